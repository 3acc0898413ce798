package crashtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// build makes the programs with their crash points.
func build(dir string) error {
	cmd := exec.Command("go", "build", "-buildvcs=false", "-tags", "crashpoints", "-o", dir+"/", "./cmd/backstop", "./cmd/backstopctl")
	cmd.Dir = top
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}

// death is how a call ends early. The zero value is no death.
type death struct {
	point string
	pass  int
	after time.Duration // at any moment: so long after its start
	trace string        // no death: the file that gets the points
}

func (d death) String() string {
	switch {
	case d.point != "":
		return fmt.Sprintf("%s:%d", d.point, d.pass)
	case d.after > 0:
		return "after " + d.after.String()
	}
	return "none"
}

// call is a program's run.
type call struct {
	cmd      *exec.Cmd
	out, log bytes.Buffer
	ended    chan error
	took     time.Duration
	cancel   context.CancelFunc
}

// patience ends a call that hangs.
const patience = time.Minute

// start runs a program, and kills it if a death says so.
func start(d death, stdin string, env []string, program string, args ...string) (*call, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c := &call{cmd: exec.CommandContext(ctx, program, args...), ended: make(chan error, 1), cancel: cancel}
	c.cmd.Env = append(os.Environ(), env...)
	switch {
	case d.point != "":
		c.cmd.Env = append(c.cmd.Env, fmt.Sprintf("BACKSTOP_CRASH_AT=%s:%d", d.point, d.pass))
	case d.trace != "":
		c.cmd.Env = append(c.cmd.Env, "BACKSTOP_CRASH_TRACE="+d.trace)
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = strings.NewReader(stdin), &c.out, &c.log
	c.cmd.WaitDelay = time.Second // a killed replay's plugin holds the output
	began := time.Now()
	if err := c.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	if d.after > 0 {
		time.AfterFunc(d.after, func() { _ = c.cmd.Process.Kill() })
	}
	go func() {
		err := c.cmd.Wait()
		c.took = time.Since(began)
		cancel()
		c.ended <- err
	}()
	return c, nil
}

// wait gives whether it was killed; else an exit code other than 0 is an error.
func (c *call) wait() (killed bool, err error) {
	err = <-c.ended
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		killed = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL && c.took < patience
	}
	if killed || err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return killed, nil
	}
	return false, fmt.Errorf("%s: %w: %s%s", strings.Join(c.cmd.Args, " "), err, c.out.String(), c.log.String())
}

// expected are the lines that a call may write to stderr after another was killed.
var expected = regexp.MustCompile(`the journal is damaged, it was put aside|half a record|the record waits in the spool`)

// complaints are the others.
func (c *call) complaints() error {
	for line := range strings.Lines(c.log.String()) {
		if !expected.MatchString(line) {
			return fmt.Errorf("%s said %s", strings.Join(c.cmd.Args, " "), line)
		}
	}
	return nil
}

// ctl starts backstopctl.
func (w *world) ctl(d death, j string, args ...string) (*call, error) {
	return start(d, "", nil, filepath.Join(w.bin, "backstopctl"), append([]string{"--journal", j}, args...)...)
}

// verb starts the plugin for a pod.
func (w *world) verb(d death, verb string, p *pod) (*call, error) {
	return start(d, p.config(), []string{"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + p.id, "CNI_NETNS=/run/netns/" + p.netns,
		"CNI_IFNAME=eth0", "CNI_PATH=" + stubDir}, filepath.Join(w.bin, "backstop"))
}

// works is a call that has to work, without a complaint.
func works(c *call, err error) error {
	if err != nil {
		return err
	}
	killed, err := c.wait()
	if killed {
		err = fmt.Errorf("%s was killed by somebody", c.cmd.Args)
	}
	return errors.Join(err, c.complaints())
}

// ip runs lines of ip's words, in a pod or in the node.
func ip(netns string, lines ...string) error {
	args := []string{"-batch", "-"}
	if netns != "" {
		args = append([]string{"-n", netns}, args...)
	}
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func look() (testnode.Snapshot, error) { return testnode.View{}.Take() }
