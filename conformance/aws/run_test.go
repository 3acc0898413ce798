package aws

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// outcome is what one row came to in one mode. What the datastore holds is part of what there is.
type outcome struct {
	Told    []string // how the DELs ended
	After   []string // what stayed right after the last of them
	Stays   []string // when the pods were gone
	Settled []string // when the daemon was back and, with backstop, the sweep had run
	Lost    []string // what was there before and is not any more
	Shown   []string // what the row has to say besides
}

// play plays a row in the node that this process is in.
func play(r row, mode string) (o outcome, err error) {
	n := &node{mode: mode, row: r, daemon: testnode.Daemon{Socket: socket}}
	if err := errors.Join(furnish(), neighbour(), n.list(), n.up("")); err != nil {
		return o, err
	}
	defer func() { _ = n.daemon.Kill() }()
	if n.before, err = look(); err != nil {
		return o, err
	}
	if err := r.play(n); err != nil {
		return o, err
	}
	if o.Stays, err = n.more(); err != nil {
		return o, err
	}
	if !n.daemon.Running() {
		if err := n.up(""); err != nil {
			return o, err
		}
	}
	if err := n.settle(0); err != nil {
		return o, err
	}
	if o.Settled, err = n.more(); err != nil {
		return o, err
	}
	now, err := look()
	o.Lost, o.Told, o.After, o.Shown = n.before.Minus(now), n.told, n.after, n.shown
	return o, err
}

// look leaves out what the guest's kernel has not.
func look() (testnode.Snapshot, error) {
	return testnode.View{Netfilter: !guest(), OnlyIPv4: guest()}.Take()
}

var (
	// noise is what no two runs have in common.
	noise = regexp.MustCompile(` (index \d+|mac \S+|mtu \d+|up|kind veth)\b`)
	// random is a name that egress-cni draws for its veth.
	random = regexp.MustCompile(`\bveth[0-9a-f]{8}\b`)
)

// plain is a line as it is in every run.
func plain(line string) string {
	return random.ReplaceAllString(noise.ReplaceAllString(line, ""), "veth…")
}

// more is what the node has more now than at first, and what the datastore has given out.
func (n *node) more() (lines []string, err error) {
	now, err := look()
	if err != nil {
		return nil, err
	}
	for _, line := range now.Minus(n.before) {
		lines = append(lines, plain(line))
	}
	slices.Sort(lines)
	ips, err := held()
	for _, ip := range ips {
		lines = append(lines, "datastore: "+ip+" is taken")
	}
	return lines, err
}

// somethingLeft is backstopctl's exit code for a replay that has to wait for another pod.
const somethingLeft = 3

// settle does what a timer does, until so many pods that are not dead and owed are recorded, and without any until nothing
// is, and then until a sweep has begun after another grace: netfilter waits for it, since the replay's DEL, too.
func (n *node) settle(live int) error {
	if n.mode == "" {
		return nil
	}
	var done time.Time
	return testnode.Until(20*time.Second, func() error {
		begun := time.Now()
		said, err := timer()
		if err != nil {
			return err
		}
		if err := recorded(live); err != nil {
			done = time.Time{}
			return fmt.Errorf("%w\n%s", err, said)
		}
		if done.IsZero() {
			done = time.Now()
		}
		left, err := n.more()
		if err == nil && len(left) > 0 && begun.Sub(done) <= grace {
			return errors.New("what is left may have to wait for the grace")
		}
		return err
	})
}

// timer is one run of the commands that the operator's timer starts.
func timer() (said []byte, err error) {
	for _, args := range [][]string{{"sweep", "--yes"}, {"replay", "--automatic", "--yes"}} {
		out, err := exec.Command("backstopctl", args...).CombinedOutput()
		if code, exited := errors.AsType[*exec.ExitError](err); err != nil && !(exited && code.ExitCode() == somethingLeft) {
			return nil, fmt.Errorf("backstopctl %v: %w: %s", args, err, out)
		}
		said = append(said, out...)
	}
	return said, nil
}

// recorded fails while others than so many live pods, and the dead and owed ones beside them, are recorded.
func recorded(live int) error {
	out, err := exec.Command("backstopctl", "list", "-o", "json").Output()
	type record struct{ ContainerID, State string }
	var open []record
	if err = errors.Join(err, json.Unmarshal(out, &open)); err != nil {
		return err
	}
	owed := slices.DeleteFunc(slices.Clone(open), func(r record) bool { return r.State != "owed" })
	if len(open)-len(owed) != live || live == 0 && len(owed) > 0 {
		return fmt.Errorf("open, where %d live: %v", live, open)
	}
	return nil
}

// held are the addresses that the real datastore has given out.
func held() (ips []string, err error) {
	b, err := os.ReadFile(store)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var file struct {
		Allocations []struct {
			IPv4 string `json:"ipv4"`
		} `json:"allocations"`
	}
	if err = errors.Join(err, json.Unmarshal(b, &file)); err != nil {
		return nil, err
	}
	for _, a := range file.Allocations {
		ips = append(ips, a.IPv4)
	}
	return ips, nil
}
