package aws

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// act is one thing that happens.
type act func(*node) error

// story is one thing after the other.
func story(acts ...act) act {
	return func(n *node) error {
		for _, a := range acts {
			if err := a(n); err != nil {
				return err
			}
		}
		return nil
	}
}

func added(p pod) act { return func(n *node) error { return n.add(p) } }

// refused is an ADD that fails, by whichever plugin.
func refused(p pod) act {
	return func(n *node) error {
		if n.add(p) == nil {
			return fmt.Errorf("the ADD of %s succeeded", p.name)
		}
		return nil
	}
}

// gone ends a sandbox as its last process would: the netns goes, and with it the pod's ends of links.
func gone(p pod) act { return func(*node) error { return testnode.RemovePod(p.sandbox) } }

func deleted(p pod) act { return func(n *node) error { return n.del(p, p.args()) } }

// deletedAs is a DEL with another CNI_ARGS than kubelet's.
func deletedAs(p pod, cniArgs string) act { return func(n *node) error { return n.del(p, cniArgs) } }

// deletedWithoutIptables is a DEL while the node has no iptables program to run: the plugins that need one fail.
func deletedWithoutIptables(p pod) act {
	return func(n *node) error { return n.del(p, p.args(), "PATH=/run/empty") }
}

// with is the plain story: an ADD, what happens to the daemon, the DEL, and the pod's end.
func with(p pod, happens ...act) act {
	return story(added(p), story(happens...), deleted(p), gone(p))
}

func up(del string) act { return func(n *node) error { return n.up(del) } }

func killed(n *node) error { return n.daemon.Kill() }

func signalled(s syscall.Signal) act { return func(n *node) error { return n.daemon.Signal(s) } }

// forgotten: the scripted daemon has no file.
func forgotten(n *node) error { return story(killed, up(""))(n) }

func cacheLost(*node) error { return os.RemoveAll("/var/lib/cni/results") }

// cacheDamaged leaves half of each entry of the runtime's cache, as a full disk would.
func cacheDamaged(*node) error {
	entries, err := filepath.Glob("/var/lib/cni/results/aws-cni-*")
	if err != nil || len(entries) == 0 {
		return fmt.Errorf("the runtime's cache has no entry of the list (%v)", err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(e)
		if err != nil {
			return err
		}
		if err := os.WriteFile(e, b[:len(b)/2], 0o600); err != nil {
			return err
		}
	}
	return nil
}

// settled is what backstop's timer does while so many pods live. A dead pod whose address or link one of them has may
// stay owed.
func settled(live int) act { return func(n *node) error { return n.settle(live) } }
