package journal

import (
	"fmt"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// transitions are the legal moves of a record (design: "Life of a record"). A
// state may always stay what it is.
var transitions = map[attachment.State][]attachment.State{
	// Owed and Closed directly: records of an earlier boot, of which only the reservation is of interest.
	attachment.Attached: {attachment.Deferred, attachment.Tearing, attachment.Owed, attachment.Closed},
	attachment.Deferred: {attachment.Tearing, attachment.Owed, attachment.Closed},
	// Deferred: "always" tears down first and then leaves the rest to the primary.
	attachment.Tearing: {attachment.Owed, attachment.Closed, attachment.Deferred},
	// Tearing: something of it is there again. Deferred: the runtime came again with the primary up.
	attachment.Owed:   {attachment.Deferred, attachment.Tearing, attachment.Closed},
	attachment.Closed: {},
}

// Move takes a record to another state, or says that this cannot happen.
func Move(r *attachment.Record, to attachment.State) error {
	next, known := transitions[r.State]
	if !known {
		return fmt.Errorf("record %s: unknown state %q", r.Key, r.State)
	}
	if r.State != to && !slices.Contains(next, to) {
		return fmt.Errorf("record %s: cannot go from %q to %q", r.Key, r.State, to)
	}
	r.State = to
	return nil
}
