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
		switch s.Verdict {
		case Unknown:
			errs = append(errs, fmt.Errorf("%s: %s", s.Resource, s.Why))
		case Delete:
			err := k.Delete(s.Resource)
			if err == nil {
				out.Removed = append(out.Removed, s.Resource)
			} else if !errors.Is(err, attachment.ErrGone) {
				errs = append(errs, err)
			}
		}
	}
	if p.Count(Delete) > 0 {
		removed, err := verify(k, r, here, others)
		out.Removed = append(out.Removed, removed...)
		errs = append(errs, err)
	}
	out.Err = errors.Join(errs...)
	return out
}

// verify plans again and removes what is there more than once, until nothing is
// left to delete.
func verify(k Kernel, r *attachment.Record, here attachment.Node, others []Other) (removed []attachment.Resource, err error) {
	for range duplicates {
		p := Build(r, here, Observe(k, r), others)
		if p.Count(Delete) == 0 {
			return removed, nil
		}
		for _, s := range p.Steps {
			if s.Verdict != Delete {
				continue
			}
			if s.Resource.Rule == nil {
				return removed, fmt.Errorf("%s is still there after its removal", s.Resource)
			}
			if err := k.Delete(s.Resource); err == nil {
				removed = append(removed, s.Resource)
			} else if !errors.Is(err, attachment.ErrGone) {
				return removed, err
			}
		}
	}
	return removed, fmt.Errorf("%s: rules are still there after %d removals", r.Key, duplicates)
}
