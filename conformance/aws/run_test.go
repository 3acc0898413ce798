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

// outcome is what one row came to in one mode.
type outcome struct {
	Told    []string // how the DELs ended
	Stays   []string // in the node when the pods were gone
	Settled []string // with backstop: when the daemon was back and the sweep had run
	Held    []string // by the datastore at the very end
	Lost    []string // what was there before and is not any more
	Shown   []string // what the row has to say besides
}

// play plays a row in the node that this process is in.
func play(r row, mode string) (outcome, error) {
	n := &node{mode: mode, row: r, daemon: testnode.Daemon{Socket: socket}}
	var o outcome
	if err := errors.Join(furnish(), n.list(), warm(), n.up("")); err != nil {
		return o, err
	}
	defer func() { _ = n.daemon.Kill() }()
	var err error
	if n.before, err = look(); err != nil {
		return o, err
	}
	if err := r.play(n); err != nil {
		return o, err
	}
	now, err := look()
	if err != nil {
		return o, err
	}
	o.Stays = n.left(now)
	if !n.daemon.Running() {
		if err := n.up(""); err != nil {
			return o, err
		}
	}
	if err := n.settle(); err != nil {
		return o, err
	}
	if now, err = look(); err != nil {
		return o, err
	}
	o.Settled, o.Lost = n.left(now), n.before.Minus(now)
	o.Told, o.Shown = n.told, n.shown
	o.Held, err = held()
	return o, err
}

// warm makes the chains that the iptables programs make by looking, so that a look changes nothing.
func warm() error {
	if os.Getenv(umlEnv) != "" {
		return nil
	}
	for _, program := range []string{"iptables", "ip6tables"} {
		for _, table := range []string{"nat", "filter"} {
			if out, err := exec.Command(program, "-t", table, "-S").CombinedOutput(); err != nil {
				return fmt.Errorf("%s -t %s -S: %w: %s", program, table, err, out)
			}
		}
	}
	return nil
}

// look leaves out what the guest's kernel has not.
func look() (testnode.Snapshot, error) {
	guest := os.Getenv(umlEnv) != ""
	return testnode.View{Netfilter: !guest, OnlyIPv4: guest}.Take()
}

var (
	// noise is what no two runs have in common.
	noise = regexp.MustCompile(` (index \d+|mac \S+|mtu \d+|up|kind veth)\b`)
	// frame is what the reference plugins share between all pods and never remove.
	frame = regexp.MustCompile(`CNI-HOSTPORT|^nft |-N KUBE|^(iptables|ip6tables) .*-P `)
)

// left is what the node has more now than at first.
func (n *node) left(now testnode.Snapshot) (lines []string) {
	for _, line := range now.Minus(n.before) {
		if !frame.MatchString(line) {
			lines = append(lines, noise.ReplaceAllString(line, ""))
		}
	}
	slices.Sort(lines)
	return lines
}

// settle does what a timer does, until no record is open; nothing without backstop.
func (n *node) settle() error {
	if n.mode == "" {
		return nil
	}
	return testnode.Until(20*time.Second, func() error {
		for _, args := range [][]string{{"sweep", "--yes"}, {"replay", "--automatic", "--yes"}} {
			if out, err := exec.Command("backstopctl", args...).CombinedOutput(); err != nil {
				return fmt.Errorf("backstopctl %v: %w: %s", args, err, out)
			}
		}
		out, err := exec.Command("backstopctl", "list", "-o", "json").Output()
		var open []struct{ ContainerID, State string }
		if err = errors.Join(err, json.Unmarshal(out, &open)); err != nil {
			return err
		}
		if len(open) > 0 {
			return fmt.Errorf("still open: %v", open)
		}
		return nil
	})
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
