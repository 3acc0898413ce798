package teardown

import (
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

// SweepAction is what a sweep does with one record.
type SweepAction string

const (
	Wait     SweepAction = "wait"      // not yet, or nothing to do
	MarkDead SweepAction = "mark dead" // first seen dead: its grace begins
	Examine  SweepAction = "examine"   // look for leftovers, remove them, settle
	Forget   SweepAction = "forget"    // of an earlier boot: only its reservation is of interest
)

// SweepInput is what a sweep knows of a record before it looks at its resources.
type SweepInput struct {
	State    attachment.State
	Life     attachment.Life
	SameNode bool
	SinceDel time.Duration // since the last DEL
	DeadFor  time.Duration // since it was first seen dead; negative when it was not
	Grace    time.Duration
	// Doubtful says that the last DEL named another network: only death settles what was meant.
	Doubtful bool
	// Claimed is the record's: what was claimed at its teardown may be nobody's by now.
	Claimed bool
	// Spared says that plugins of the list may be at work on what was left to them.
	Spared bool
	// Acknowledged is what Acknowledged says of it.
	Acknowledged bool
}

// DecideSweep says what is to be done, in which the grace keeps a sweep away
// from a primary whose DEL may still be running.
func DecideSweep(in SweepInput) SweepAction {
	switch in.State {
	case attachment.Attached:
		switch {
		case !in.SameNode:
			return Forget
		case in.Life != attachment.Dead:
			return Wait
		case in.DeadFor < 0:
			return MarkDead
		case in.DeadFor < in.Grace:
			return Wait
		}
		return Examine
	case attachment.Deferred:
		switch {
		case in.SinceDel < in.Grace: // a DEL of this boot, whatever boot the record is of: the primary is at it
			return Wait
		case !in.SameNode:
			return Forget
		case in.Doubtful && in.Life != attachment.Dead:
			return Wait
		}
		return Examine
	case attachment.Owed:
		if in.SameNode && (in.Acknowledged || in.Claimed) && in.SinceDel >= in.Grace {
			return Examine // acknowledged: the DEL that was running when it was torn down has finished
		}
	case attachment.Tearing:
		switch {
		case !in.SameNode:
			return Forget
		case in.Spared:
			return Wait
		}
		return Examine // whoever began holds the lock while it works: it is gone
	}
	return Wait
}

// Acknowledged says whether the primary is known to have finished its part.
// libcni deletes its cache entry when the whole list's DEL succeeded; without any DEL nobody asked the primary.
func Acknowledged(r *attachment.Record, cacheEntryThere bool) bool {
	return r.Del != nil && !r.Del.Refused && !r.Del.Lost && !cacheEntryThere
}
