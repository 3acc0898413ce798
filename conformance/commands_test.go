package conformance

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/backstop-cni/backstop/conformance/internal/lab"
	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/internal/testnode/nodescript"
)

// ownCommands are what the stories here say beyond nodescript's commands; README.md lists them.
func ownCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"bystanders": nodescript.Command(bystanders).Func("bystanders"),
		"conflist":   nodescript.Command(conflist).Func("conflist NAME KEY=VALUE…"),
		"lose":       nodescript.Command(lose).Func("lose NETWORK COUNT"),
		"record":     nodescript.Command(record).Func("record POD STATE|none"),
		"reserved":   nodescript.Command(reserved).Func("reserved NETWORK COUNT"),
		"settle":     nodescript.Command(settle).Func("settle"),
	}
}

// bystanders: the node gets what no removal may touch, see scenarios/bystanders.
func bystanders(*testscript.TestScript, []string) error {
	for _, family := range []string{"4", "6"} {
		batch := filepath.Join("scenarios/bystanders", "v"+family+".batch")
		if out, err := exec.Command("ip", "-"+family, "-batch", batch).CombinedOutput(); err != nil {
			return fmt.Errorf("making what stands by from %s: %w: %s", batch, err, out)
		}
	}
	return nil
}

// record: the pod's open record has this state; none: there is no open record of the pod.
func record(ts *testscript.TestScript, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("record: a pod and a state are wanted")
	}
	open, err := openRecords(ts)
	if err != nil {
		return err
	}
	state := "none"
	for _, r := range open {
		if r.ContainerID == containerID(args[0]) || r.ContainerID == args[0] {
			state = r.State
		}
	}
	if state != args[1] {
		return fmt.Errorf("the record of %s is %s, want %s; open are %v", args[0], state, args[1], open)
	}
	return nil
}

// containerID is the one that cnitool makes up for a pod.
func containerID(pod string) string {
	sum := sha512.Sum512([]byte("/run/netns/" + pod))
	return fmt.Sprintf("cnitool-%x", sum[:10])
}

type openRecord struct{ Network, ContainerID, IfName, State string }

// openRecords asks backstopctl, as an operator without CNI_PATH would.
func openRecords(ts *testscript.TestScript) ([]openRecord, error) {
	out, err := backstopctl(ts, "list", "-o", "json")
	if err != nil {
		return nil, err
	}
	var open []openRecord
	if err := json.Unmarshal(out, &open); err != nil {
		return nil, fmt.Errorf("reading the records %q: %w", out, err)
	}
	return open, nil
}

// settle sweeps until no record is open, for lists with a short grace.
func settle(ts *testscript.TestScript, _ []string) error {
	return testnode.Until(15*time.Second, func() error {
		if _, err := backstopctl(ts, "sweep", "--yes"); err != nil {
			return err
		}
		open, err := openRecords(ts)
		if err == nil && len(open) > 0 {
			err = fmt.Errorf("open are %v", open)
		}
		return err
	})
}

// reserved: host-local holds so many addresses of a network.
func reserved(_ *testscript.TestScript, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("reserved: a network and a number are wanted")
	}
	want, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("reserved: %w", err)
	}
	files, err := os.ReadDir(filepath.Join("/var/lib/cni/networks", args[0]))
	if err != nil {
		return fmt.Errorf("looking for the reservations of %s: %w", args[0], err)
	}
	var held []string
	for _, f := range files {
		if f.Name() != "lock" && !strings.HasPrefix(f.Name(), "last_reserved_ip") {
			held = append(held, f.Name())
		}
	}
	if len(held) != want {
		return fmt.Errorf("host-local holds %q of %s, want %d", held, args[0], want)
	}
	return nil
}

func backstopctl(ts *testscript.TestScript, args ...string) ([]byte, error) {
	programs, err := lab.FindPrograms(".")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(programs.Backstop, "backstopctl"), args...)
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME")}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("backstopctl %s: %w: %s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return out, nil
}
