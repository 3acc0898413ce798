package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

// foreignRemoval says that something has gone that nobody who might has taken.
type foreignRemoval struct{ whose, what string }

func (f foreignRemoval) Error() string { return fmt.Sprintf("%s has lost %s", f.whose, f.what) }

// judge looks at the node after an operation: every live attachment and every bystander has what it needs.
func (w *world) judge() error {
	now, err := list()
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range w.lost {
		errs = append(errs, errors.New(l))
	}
	w.lost = nil
	for _, a := range w.living() {
		for text := range a.need {
			if !now.has(text) {
				errs = append(errs, foreignRemoval{a.String(), text})
				delete(a.need, text)
			}
		}
		if a.holds && a.net.hostLocal && len(a.net.holds(a.owner())) < len(a.ips) {
			errs = append(errs, foreignRemoval{a.String(), "a reservation"})
		}
		if a.known && a.recall() == nil {
			errs = append(errs, foreignRemoval{a.String(), "the runtime's cache entry"})
		}
	}
	for text, n := range w.bystanders {
		if now.count[text] < n {
			errs = append(errs, foreignRemoval{"a bystander", text})
			w.bystanders[text] = now.count[text]
		}
	}
	return errors.Join(errs...)
}

func (a *att) String() string {
	s := a.Key.String()
	for _, ip := range a.ips {
		s += " " + ip.String()
	}
	if a.window {
		s += " (between its primary's ADD and backstop's)"
	}
	return s
}

// dead are the attachments that are dead for all to see: no netns or a DEL seen, and no host link left.
func (w *world) dead() map[*att]bool {
	out := map[*att]bool{}
	now, err := list()
	if err != nil {
		return out
	}
	for _, a := range w.atts {
		if !a.stands() && !a.hasLink(now) && !a.window {
			out[a] = true
		}
	}
	return out
}

func (a *att) hasLink(now listing) bool {
	for text, it := range now.items {
		if it.kind == "link" && it.index == a.index && a.index != 0 && strings.Contains(text, " "+a.link+" ") {
			return true
		}
	}
	return false
}

// healed wants that no rule of an address that was just given out stays behind from a dead attachment: it would
// misroute the new one.
func (w *world) healed(a *att, dead map[*att]bool) error {
	if !a.live() {
		return nil
	}
	now, err := list()
	if err != nil {
		return err
	}
	for text, it := range now.items {
		if it.kind != "rule" || !intersect(it.ips, a.ips) || a.need[text] || a.made[text] || w.bystanders[text] > 0 {
			continue
		}
		others := slices.ContainsFunc(w.attachments(), func(o *att) bool { return o != a && !dead[o] && o.made[text] })
		if !others {
			return fmt.Errorf("ADD of %s left a dead attachment's %s", a, text)
		}
	}
	return nil
}

// before is what was there before a DEL.
type before struct {
	record *attachment.Record
	now    listing
	at     time.Time
}

func (w *world) beforeDel(a *att) (b before, err error) {
	if b.record, err = record(a.Key); err != nil {
		return b, err
	}
	b.at = time.Now()
	b.now, err = list()
	return b, err
}

// afterDel wants what section 4 of the design says of a DEL whose record is there: torn down while the primary is
// away, left to it while it is there.
func (w *world) afterDel(a *att, b before, c call) error {
	if b.record == nil || !sameBoot(b.record, w.boot) {
		return nil
	}
	now, err := list()
	if err != nil {
		return err
	}
	n := a.net
	if n.probe && !n.up || n.teardown == "always" {
		for text := range a.made {
			if it := now.items[text]; now.has(text) && !a.isFurther(it.index) && !w.claimed(a, text, now) {
				return fmt.Errorf("DEL of %s while its primary is away left %s", a, text)
			}
		}
		return nil
	}
	first := b.record.Del == nil && b.record.DeadSince == nil
	if first && time.Since(b.at) < n.grace {
		for text := range a.made {
			if b.now.has(text) && !now.has(text) && a.sb.alive {
				return fmt.Errorf("DEL of %s took %s away from its primary, which is there", a, text)
			}
		}
	}
	return nil
}

// claimed says that somebody else who is not plainly dead has the same thing, or is about to: rules of an address that
// a pod between its two ADDs has are the kernel's word against a removal.
func (w *world) claimed(a *att, text string, now listing) bool {
	it := now.items[text]
	return slices.ContainsFunc(w.attachments(), func(o *att) bool {
		switch {
		case o == a || o.deleted && !o.hasLink(now) || !o.sb.alive && !o.hasLink(now):
			return false
		case o.made[text]:
			return true
		}
		return o.window && it.kind == "rule" && (intersect(it.ips, o.ips) || it.name != "" && it.name == o.link)
	})
}

func sameBoot(r *attachment.Record, boot int) bool {
	return strings.HasSuffix(r.Node.Now.BootID, fmt.Sprintf("-%012d", boot))
}
