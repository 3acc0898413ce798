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

// state is how many attachments a node holds beside the pods that are measured: in the kernel, and in the journal.
type state int

const (
	journalDir = "/var/lib/cni/backstop"
	seedDir    = "/var/lib/cni/backstop-seed" // the journal as a state begins
)

// node is the throw-away node that the program runs in.
type node struct {
	current state // how many attachments have what a primary leaves
	seeded  bool  // and are in the journal
	netns   state // how many have a netns
}

// newNode gives the node its pods: each has a veth, an address, a host route and the two rules of an AWS-style primary.
func newNode() (*node, error) {
	n := &node{}
	if out, err := exec.Command("stat", "-f", "-c", "%T", "/var/lib/cni").Output(); err != nil {
		return nil, fmt.Errorf("looking what /var/lib/cni is on: %w", err)
	} else if strings.TrimSpace(string(out)) == "tmpfs" {
		return nil, fmt.Errorf("/var/tmp is no disk here: an fsync costs nothing, and figures mean nothing")
	}
	for _, name := range podNames() {
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

// enter brings the node into a state, which has no fewer attachments than the one before.
func (n *node) enter(s state) error {
	if n.seeded && n.current == s {
		return n.reset()
	}
	if n.seeded {
		if err := n.reset(); err != nil {
			return err
		}
	} else if err := (plugin{name: "backstop"}).call("ADD", 0); err != nil { // a journal that is not made while it is measured
		return err
	}
	if err := n.dressSeeds(n.current, s); err != nil {
		return err
	}
	for i := n.current; i < s; i++ {
		if err := seed(i); err != nil {
			return err
		}
	}
	n.current, n.seeded = s, true
	if err := os.RemoveAll(seedDir); err != nil {
		return fmt.Errorf("emptying the copy of the journal: %w", err)
	}
	return copyDir(journalDir, seedDir)
}

// dressSeeds makes what a primary leaves in the node for the attachments from one number to another.
func (n *node) dressSeeds(from, to state) error {
	var lines []string
	for ; n.netns < to; n.netns++ {
		lines = append(lines, fmt.Sprintf("netns add seed%d", n.netns))
	}
	for i := from; i < to; i++ {
		lines = append(lines, i.made()...)
	}
	return batch(lines...)
}

// made is one attachment in ip's words.
func (i state) made() []string {
	return []string{
		fmt.Sprintf("link add seed%d type veth peer name eth0 netns seed%d", i, i),
		fmt.Sprintf("link set seed%d up", i),
		fmt.Sprintf("route add %s/32 dev seed%d scope link", i.address(), i),
		fmt.Sprintf("rule add pref 512 to %s lookup main", i.address()),
		fmt.Sprintf("rule add pref 1536 from %s lookup 100", i.address()),
	}
}

// unmade is what takes it away.
func (i state) unmade() []string {
	return []string{
		fmt.Sprintf("rule del pref 512 to %s lookup main", i.address()),
		fmt.Sprintf("rule del pref 1536 from %s lookup 100", i.address()),
		fmt.Sprintf("route del %s/32 dev seed%d", i.address(), i),
		fmt.Sprintf("link del seed%d", i),
	}
}

func (i state) address() string { return fmt.Sprintf("10.7.%d.%d", i/250, i%250+1) }

// reset sets the journal back to the beginning of the state.
func (n *node) reset() error {
	if err := os.RemoveAll(journalDir); err != nil {
		return fmt.Errorf("emptying the journal: %w", err)
	}
	return copyDir(seedDir, journalDir)
}

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
