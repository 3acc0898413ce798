package teardown

import (
	"errors"
	"fmt"

	"github.com/backstop-cni/backstop/attachment"
)

// Outcome is what a teardown achieved.
type Outcome struct {
	Plan    Plan
	Removed []attachment.Resource
	// Err joins what could not be read or removed; nil when the record is clean.
	Err error
}

// duplicates bounds how many identical rules are removed: the same one can be
// in the node more than once.
const duplicates = 8

// Execute carries the plan out in its order and looks again. Errors are
// collected and never stop the rest.
func Execute(k Kernel, r *attachment.Record, here attachment.Node, p Plan, others []Other) Outcome {
	out := Outcome{Plan: p}
	var errs []error
	for _, s := range p.Steps {
		if s.Verdict != Delete {
			continue
		}
		err := k.Delete(s.Resource)
		if err == nil {
			out.Removed = append(out.Removed, s.Resource)
		} else if !errors.Is(err, attachment.ErrGone) {
			errs = append(errs, err)
		}
	}
	if p.Count(Delete) == 0 {
		out.Err = unread(p)
		return out
	}
	removed, err := verify(k, r, here, others, p.Spares())
	out.Removed = append(out.Removed, removed...)
	out.Err = errors.Join(append(errs, err)...)
	return out
}

// verify plans again and removes what is there more than once, until nothing is
// left that can be removed. What is left then, or cannot be read, is the error.
func verify(k Kernel, r *attachment.Record, here attachment.Node, others []Other, spare bool) (removed []attachment.Resource, err error) {
	for range duplicates {
		p := Build(r, here, Observe(k, r), others)
		if spare {
			p.Spare(r)
		}
		errs := []error{unread(p)}
		again := false
		for _, s := range p.Steps {
			if s.Verdict != Delete {
				continue
			}
			if s.Resource.Rule == nil {
				errs = append(errs, fmt.Errorf("%s is still there after its removal", s.Resource))
				continue
			}
			err := k.Delete(s.Resource)
			if err == nil {
				removed = append(removed, s.Resource)
			} else if !errors.Is(err, attachment.ErrGone) {
				errs = append(errs, err)
				continue
			}
			again = true
		}
		if !again {
			return removed, errors.Join(errs...)
		}
	}
	return removed, fmt.Errorf("%s: rules are still there after %d removals", r.Key, duplicates)
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
