package teardown

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// Outcome is what a teardown achieved.
type Outcome struct {
	Plan    Plan
	Removed []attachment.Resource
	// Err joins what could not be read or removed; nil when the record is clean.
	Err error
}

// Work is one record to be torn down, with what a plan for it has to know.
type Work struct {
	Record *attachment.Record
	Plan   Plan
	Others []Other
}

// duplicates bounds how many identical rules are removed: the same one can be
// in the node more than once.
const duplicates = 8

// Execute carries the plans out, all in one order, and looks again. The outcomes are in the order of the work. Errors are
// collected and never stop the rest.
func Execute(k Kernel, here attachment.Node, work []Work) []Outcome {
	e := execution{k: k, here: here, work: work, outs: make([]Outcome, len(work)), errs: make([][]error, len(work))}
	var dirty []int
	for i, w := range work {
		e.outs[i].Plan = w.Plan
		if w.Plan.Count(Delete) > 0 {
			dirty = append(dirty, i)
		} else {
			e.errs[i] = []error{unread(w.Plan)}
		}
	}
	_, failed := e.delete(dirty, func(i int) []Step { return work[i].Plan.Steps })
	e.note(failed)
	e.verify(dirty)
	for i := range e.outs {
		e.outs[i].Err = errors.Join(e.errs[i]...)
	}
	return e.outs
}

type execution struct {
	k    Kernel
	here attachment.Node
	work []Work
	outs []Outcome
	errs [][]error // of each work
}

// delete removes what some of the work's steps say, what refers first whosever it is. It tells whose had anything that
// went, or had gone by itself, and what could not be removed.
func (e *execution) delete(of []int, steps func(i int) []Step) (went map[int]bool, failed map[int][]error) {
	type task struct {
		x  attachment.Resource
		of int
	}
	var tasks []task
	for _, i := range of {
		for _, s := range steps(i) {
			if s.Verdict == Delete {
				tasks = append(tasks, task{s.Resource, i})
			}
		}
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(rank(a.x), rank(b.x)) })
	all := make([]attachment.Resource, len(tasks))
	for n, t := range tasks {
		all[n] = t.x
	}
	went, failed = map[int]bool{}, map[int][]error{}
	for n, err := range e.k.DeleteAll(all) {
		i := tasks[n].of
		switch {
		case err == nil:
			e.outs[i].Removed, went[i] = append(e.outs[i].Removed, all[n]), true
		case errors.Is(err, attachment.ErrGone):
			went[i] = true
		default:
			failed[i] = append(failed[i], err)
		}
	}
	return went, failed
}

func (e *execution) note(failed map[int][]error) {
	for i, errs := range failed {
		e.errs[i] = append(e.errs[i], errs...)
	}
}

// verify plans again and removes what is there more than once, until nothing is
// left that can be removed. What is left then, or cannot be read, is an error.
func (e *execution) verify(pending []int) {
	for range duplicates {
		if len(pending) == 0 {
			return
		}
		left, wrong := e.look(pending)
		went, failed := e.delete(pending, func(i int) []Step { return left[i] })
		pending = slices.DeleteFunc(pending, func(i int) bool {
			if !went[i] {
				e.note(map[int][]error{i: append(wrong[i], failed[i]...)})
			}
			return !went[i]
		})
	}
	for _, i := range pending {
		e.errs[i] = append(e.errs[i], fmt.Errorf("%s: rules are still there after %d removals", e.work[i].Record.Key, duplicates))
	}
}

// look gives the rules that are there still, and what else is.
func (e *execution) look(at []int) (left map[int][]Step, wrong map[int][]error) {
	recs := make([]*attachment.Record, len(at))
	for n, i := range at {
		recs[n] = e.work[i].Record
	}
	k := Together(e.k, recs...)
	left, wrong = map[int][]Step{}, map[int][]error{}
	for _, i := range at {
		w := e.work[i]
		p := Build(w.Record, e.here, Observe(k, w.Record), w.Others)
		if w.Plan.Spares() {
			p.Spare(w.Record)
		}
		wrong[i] = []error{unread(p)}
		for _, s := range p.Steps {
			switch {
			case s.Verdict != Delete:
			case s.Resource.Rule != nil:
				left[i] = append(left[i], s)
			default:
				wrong[i] = append(wrong[i], fmt.Errorf("%s is still there after its removal", s.Resource))
			}
		}
	}
	return left, wrong
}

// unread joins what a plan could not decide.
func unread(p Plan) error {
	var errs []error
	for _, s := range p.Steps {
		if s.Verdict == Unknown {
			errs = append(errs, fmt.Errorf("%s: %s", s.Resource, s.Why))
		}
	}
	return errors.Join(errs...)
}
