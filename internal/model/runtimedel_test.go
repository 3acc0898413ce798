package model

import (
	"fmt"
	"os"
)

// delOptions are what may be odd about a DEL.
type delOptions struct {
	netns  string // CNI_NETNS; the sandbox's own path when it is "own"
	name   string // another network's name, as containerd uses it after a rename; without prevResult then
	crio   bool   // the runtime drops its cache entry on failure, too
	times  int    // how many at once
	during bool   // at the same time as backstop's part of the ADD
}

// chainDel is the DEL of the whole list: backstop first, then the primary, then the cache entry.
func (w *world) chainDel(a *att, d delOptions) error {
	c := call{verb: "DEL", a: a, netns: d.netns, name: d.name, result: a.recall()}
	if d.netns == "own" {
		c.netns = a.sb.path
	}
	if d.name != "" {
		c.result = nil
	}
	before, err := w.beforeDel(a)
	if err != nil {
		return err
	}
	if a.renamed = d.name != "" && a.stands(); !a.renamed {
		a.deleted = true
	}
	if err := w.backstopDel(c, max(d.times, 1), d.during); err != nil {
		return err
	}
	if !d.during && d.name == "" {
		if err := w.afterDel(a, before, c); err != nil {
			return err
		}
	}
	for range max(d.times, 1) {
		if err := w.restOfDel(a, c, d); err != nil {
			return err
		}
	}
	return nil
}

// backstopDel runs backstop's part, several times at once and beside its part of the ADD when asked to.
func (w *world) backstopDel(c call, times int, during bool) error {
	type answer struct {
		verb, out string
		code      int
		err       error
	}
	answers := make(chan answer)
	start := func(c call) {
		go func() {
			out, code, err := w.plugin(c)
			answers <- answer{c.verb, out, code, err}
		}()
	}
	n := times
	if during {
		n++
		start(call{verb: "ADD", a: c.a, netns: c.a.sb.path, result: c.a.result})
	}
	for range times {
		start(c)
	}
	var failed error
	for range n {
		x := <-answers
		if x.err == nil && x.code != 0 {
			x.err = fmt.Errorf("%s of %s: exit code %d: %s", x.verb, c.a.Key, x.code, x.out)
		}
		if x.err == nil && x.verb == "DEL" && x.out != "" {
			x.err = fmt.Errorf("DEL of %s printed %s", c.a.Key, x.out)
		}
		if x.err != nil {
			failed = x.err
		}
	}
	return failed
}

// restOfDel is what libcni does behind backstop.
func (w *world) restOfDel(a *att, c call, d delOptions) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, err := list()
	if err != nil {
		return err
	}
	failed := w.primaryDel(a.Key, c.result != nil)
	after, err := list()
	if err != nil {
		return err
	}
	w.forgive(before, after, nil)
	w.note("  primary's DEL of %s: %v", a.Key, failed)
	switch {
	case failed == nil && d.name == "":
		return a.forget()
	case failed != nil && d.crio && d.name == "":
		a.forgotten = a.forgotten || a.cached
		return a.forget()
	}
	return nil
}

// oddNetns gives what runtimes were seen to pass as CNI_NETNS at DEL.
func (w *world) oddNetns(o *op) string {
	switch o.rand.IntN(7) {
	case 0:
		return ""
	case 1:
		return "/run/netns/gone"
	case 2:
		return logFile // a regular file
	case 3:
		return fmt.Sprintf("/proc/%d/ns/net", os.Getpid()) // the host's own: a recycled pid
	case 4:
		if all := w.living(); len(all) > 0 {
			return all[o.rand.IntN(len(all))].sb.path // another pod's
		}
	}
	return "own"
}
