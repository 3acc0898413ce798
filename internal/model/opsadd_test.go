package model

import (
	"slices"
	"strings"
)

func contains(words, word string) bool { return slices.Contains(strings.Fields(words), word) }

// fresh gives the slot's next sandbox. One that runs is left to its fate, now and then: its runtime lost track of it.
func (w *world) fresh(o *op, s *slot) (*sandbox, error) {
	if c := s.current(); c != nil && c.alive && !o.chance(15) {
		if slices.ContainsFunc(c.atts, (*att).stands) {
			return nil, nil
		}
	}
	return w.newSandbox(s)
}

// add is a whole ADD of a pod's attachments. Where a primary fails the runtime sends the DEL.
func (w *world) add(o *op, s *slot) error {
	sb, err := w.fresh(o, s)
	if err != nil || sb == nil {
		return err
	}
	for _, a := range sb.atts {
		began, err := w.primaryOrDel(a, o)
		if err != nil || !began {
			return err
		}
		if err := w.finishAdd(a); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) primaryOrDel(a *att, o *op) (began bool, err error) {
	failed := w.primaryAdd(a, o)
	w.note("  primary's ADD of %s: %v", a, failed)
	if failed == nil {
		return true, nil
	}
	return false, w.chainDel(a, delOptions{netns: "own"})
}

// beginAdd is the primary's part alone: other things happen before backstop's.
func (w *world) beginAdd(o *op, s *slot) error {
	sb, err := w.fresh(o, s)
	if err != nil || sb == nil {
		return err
	}
	for _, a := range sb.atts {
		if began, err := w.primaryOrDel(a, o); err != nil || !began {
			return err
		}
	}
	return nil
}

// endAdd is backstop's part of an ADD that was begun, whatever happened to the pod meanwhile.
func (w *world) endAdd(_ *op, _ *slot) error {
	for _, a := range w.attachments() {
		if a.window {
			w.note("  backstop's ADD of %s", a)
			return w.finishAdd(a)
		}
	}
	return nil
}

// addAgain is a second ADD of the same attachment, where its primary allows that.
func (w *world) addAgain(o *op, s *slot) error {
	c := s.current()
	if c == nil || !c.alive {
		return nil
	}
	for _, a := range c.atts {
		if !a.net.fixedName || !a.known {
			continue
		}
		if failed := w.primaryAdd(a, o); failed != nil {
			w.note("  primary's second ADD of %s: %v", a, failed)
			continue
		}
		w.note("  second ADD of %s", a)
		if err := w.finishAdd(a); err != nil {
			return err
		}
	}
	return nil
}

// delDuringAdd is a DEL at the same time as backstop's part of the ADD. Which came first the journal tells.
func (w *world) delDuringAdd(o *op, s *slot) error {
	sb, err := w.fresh(o, s)
	if err != nil || sb == nil {
		return err
	}
	for _, a := range sb.atts {
		began, err := w.primaryOrDel(a, o)
		if err != nil || !began {
			return err
		}
		now, err := list()
		if err != nil {
			return err
		}
		if err := w.lookUp(); err != nil {
			return err
		}
		w.absorb(a, now)
		if err := w.chainDel(a, delOptions{netns: "own", during: true}); err != nil {
			return err
		}
		r, err := record(a.Key)
		if err != nil {
			return err
		}
		if r != nil && r.State == "attached" {
			w.note("  the DEL of %s came first", a)
			if err := w.added(a); err != nil {
				return err
			}
			continue
		}
		a.window, a.known = false, true
		if a.holds || o.chance(50) { // the ADD's end writes the cache entry, before or after a DEL that succeeds removes it
			if err := a.remember(); err != nil {
				return err
			}
		}
	}
	return nil
}
