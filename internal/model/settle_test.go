package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/testnode"
)

// leftover says what is there and should not be.
type leftover struct{ what string }

func (l leftover) Error() string { return "left over: " + l.what }

// settle lets everything come to rest: the daemons are up and willing, begun ADDs end, and sweeps and replays run
// until nothing is left for them, or patience ends. Then it looks at everything.
func (w *world) settle() error {
	if err := w.sweep(nil, nil); err != nil {
		return err
	}
	for _, n := range w.nets {
		n.refuses = false
		if err := n.start(); err != nil {
			return err
		}
	}
	for _, a := range w.attachments() {
		if a.window {
			w.note("  backstop's ADD of %s", a)
			if err := w.finishAdd(a); err != nil {
				return err
			}
		}
	}
	if err := w.judge(); err != nil {
		return err
	}
	err := testnode.Until(w.settleTime, func() error {
		if err := w.round(); err != nil {
			return err
		}
		return errors.Join(w.atRest(), w.judge())
	})
	return errors.Join(err, w.judge())
}

// round is what a timer runs on a node.
func (w *world) round() error {
	w.said = ""
	for _, args := range [][]string{{"sweep", "--yes"}, {"replay", "--automatic", "--yes"}, {"gc", "--runtime-cache", "--yes"}} {
		out, code, err := w.ctl(args...)
		if err := w.wantCode(args[0]+": "+out, code, err, 0, 3); err != nil {
			return err
		}
		w.said += fmt.Sprintf("%s exits with %d and says\n%s", args[0], code, out)
	}
	return nil
}

// row is what is used of a line of `backstopctl list`.
type row struct {
	attachment.Key
	State attachment.State
	IPs   []addr
}

// atRest says what is still to be done, or was left.
func (w *world) atRest() error {
	out, code, err := w.ctl("list", "-o", "json")
	if err := w.wantCode("list", code, err, 0); err != nil {
		return err
	}
	var rows []row
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		return err
	}
	open := map[attachment.Key]bool{}
	var errs []error
	for _, r := range rows {
		open[r.Key] = true
		errs = append(errs, w.legitimate(r))
	}
	for _, a := range w.living() {
		if !open[a.Key] {
			errs = append(errs, fmt.Errorf("%s lives and is not in the journal", a))
		}
	}
	return errors.Join(errors.Join(errs...), w.kernelAtRest(), w.filesAtRest(open))
}

// legitimate says why a record should not be as it is: attached are those that live, and owed those whose address a
// live one has by now.
func (w *world) legitimate(r row) error {
	a := w.atts[r.Key]
	switch {
	case a == nil:
		return leftover{fmt.Sprintf("a record of %s, which never was", r.Key)}
	case r.State == attachment.Attached && a.stands(), r.State == attachment.Deferred && a.stands() && a.renamed:
		return nil
	case r.State == attachment.Owed && slices.ContainsFunc(w.attachments(), func(o *att) bool { return o != a && o.stands() && intersect(o.ips, r.IPs) }):
		return nil
	}
	return leftover{fmt.Sprintf("a record of %s, %s", a, r.State)}
}

// kernelAtRest names what neither a bystander nor a live attachment has. Of what a live one needs there may be more
// than one: nothing tells a dead pod's identical rule from its own. What it had of an earlier ADD stays until its DEL.
func (w *world) kernelAtRest() error {
	now, err := list()
	if err != nil {
		return err
	}
	var errs []error
	for text, n := range now.count {
		if n > w.bystanders[text] && !slices.ContainsFunc(w.attachments(), func(a *att) bool { return a.stands() && a.made[text] }) {
			errs = append(errs, leftover{text})
		}
	}
	return errors.Join(errs...)
}

// filesAtRest looks at reservations, at what daemons remember, and at the runtime's cache.
func (w *world) filesAtRest(open map[attachment.Key]bool) error {
	var errs []error
	for _, n := range w.nets {
		held, err := n.holders()
		errs = append(errs, err)
		for ip, owner := range held {
			id, ifName, _ := strings.Cut(owner, "/")
			k := attachment.Key{Network: n.name, ContainerID: id, IfName: ifName}
			a := w.atts[k]
			switch {
			case a != nil && (a.stands() || open[k]):
			case a != nil && (!a.known || a.forgotten && !n.ipamKey):
				// backstop never saw it; or took the cache entry's end for the primary's word
				errs = append(errs, n.release(owner))
			default:
				errs = append(errs, leftover{fmt.Sprintf("reservation %s of %s", ip, owner)})
			}
		}
	}
	// In a node that is a container, only a record tells that the runtime's paths mean the same to a gc.
	if known, err := w.recordedInThisBoot(); err != nil || !known {
		return errors.Join(append(errs, err)...)
	}
	names, err := os.ReadDir(cacheDir + "/results")
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, name := range names {
		ok := slices.ContainsFunc(w.attachments(), func(a *att) bool {
			return cacheFile(a.Key) == cacheDir+"/results/"+name.Name() && (open[a.Key] || a.sb.alive)
		})
		if !ok {
			errs = append(errs, leftover{"the runtime's cache entry " + name.Name()})
		}
	}
	return errors.Join(errs...)
}

// farewell ends every pod, and wants the node as it was before the first one.
func (w *world) farewell() error {
	for i, s := range w.slots {
		for _, sb := range s.sandboxes {
			for _, a := range sb.atts {
				if a.stands() && i%2 == 0 { // the others die without any DEL
					w.note("  DEL of %s", a)
					if err := w.chainDel(a, delOptions{netns: "own"}); err != nil {
						return err
					}
				}
			}
			if err := sb.kill(); err != nil {
				return err
			}
		}
	}
	if err := w.settle(); err != nil {
		return err
	}
	for _, f := range w.foreign {
		if err := w.removeForeign(f); err != nil {
			return err
		}
	}
	after, err := testnode.View{}.Take()
	if err != nil {
		return err
	}
	if diff := testnode.Diff(w.before, after); diff != "" {
		return leftover{"by ip's listing:\n" + diff}
	}
	return nil
}
