package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// pod is one of the node's pods, by number. They are used in turn.
type pod int

const pods = 20

func (p pod) netns() string    { return fmt.Sprintf("/run/netns/pod%d", p) }
func (p pod) hostLink() string { return fmt.Sprintf("bench%d", p) }
func (p pod) address() string  { return fmt.Sprintf("10.9.0.%d", p+1) }

// state is how much a node holds beside the pods that are measured.
type state struct {
	name    string
	records int // in the journal; each has two rules in the kernel
}

const (
	journalDir = "/var/lib/cni/backstop"
	seedDir    = "/var/lib/cni/backstop-seed" // the journal as a state begins
)

// node is the throw-away node that the program runs in.
type node struct {
	current *state
}

// newNode gives the node its pods: each has a veth, an address, a host route and the two rules of an AWS-style primary.
func newNode() (*node, error) {
	n := &node{}
	if out, err := exec.Command("stat", "-f", "-c", "%T", "/var/lib/cni").Output(); err != nil {
		return nil, fmt.Errorf("looking what /var/lib/cni is on: %w", err)
	} else if strings.TrimSpace(string(out)) == "tmpfs" {
		return nil, fmt.Errorf("/var/tmp is no disk here: an fsync costs nothing, and figures mean nothing")
	}
	for _, name := range append([]string{"seeds"}, podNames()...) {
		if err := ip("netns", "add", name); err != nil {
			return nil, err
		}
	}
	for p := range pod(pods) {
		if err := n.dress(p); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func podNames() []string {
	var names []string
	for p := range pod(pods) {
		names = append(names, fmt.Sprintf("pod%d", p))
	}
	return names
}

// dress makes what a primary leaves in the node for a pod, where it is not there.
func (n *node) dress(p pod) error {
	if ip("link", "show", p.hostLink()) == nil {
		return nil
	}
	return batch(
		fmt.Sprintf("link add %s type veth peer name eth0 netns pod%d", p.hostLink(), p),
		fmt.Sprintf("link set %s up", p.hostLink()),
		fmt.Sprintf("route add %s/32 dev %s", p.address(), p.hostLink()),
		fmt.Sprintf("rule add pref 512 to %s lookup main", p.address()),
		fmt.Sprintf("rule add pref 1536 from %s lookup 100", p.address()))
}

// enter brings the node into a state: what the state's other pods left in kernel and journal. They share one netns,
// for what is to be measured are the journal's and the rules' numbers.
func (n *node) enter(s state) error {
	if n.current != nil && *n.current == s {
		return n.reset()
	}
	if err := os.RemoveAll(journalDir); err != nil {
		return fmt.Errorf("emptying the journal: %w", err)
	}
	var rules []string
	for i := range s.records {
		rules = append(rules,
			"rule add pref 512 to "+seedAddress(i)+" lookup main",
			"rule add pref 1536 from "+seedAddress(i)+" lookup 100")
	}
	if err := batch(rules...); err != nil {
		return err
	}
	for i := range max(s.records, 1) { // one at least, for a journal that is not made while it is measured
		if err := seed(i); err != nil {
			return err
		}
	}
	n.current = &s
	if err := os.RemoveAll(seedDir); err != nil {
		return fmt.Errorf("emptying the copy of the journal: %w", err)
	}
	return copyDir(journalDir, seedDir)
}

// reset sets the journal back to the beginning of the state.
func (n *node) reset() error {
	if err := os.RemoveAll(journalDir); err != nil {
		return fmt.Errorf("emptying the journal: %w", err)
	}
	return copyDir(seedDir, journalDir)
}

func seedAddress(i int) string { return fmt.Sprintf("10.7.%d.%d", i/250, i%250+1) }

// copyDir copies, and waits until the copy is on the disk: what is measured next must not pay for it.
func copyDir(from, to string) error {
	for _, args := range [][]string{{"cp", "-a", from, to}, {"sync", "-f", to}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("copying the journal: %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// batch runs many ip commands in one process.
func batch(commands ...string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip -batch of %d commands: %w: %s", len(commands), err, out)
	}
	return nil
}
