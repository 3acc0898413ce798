package reconcile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// Settle says which state a record has after a teardown that left it clean.
type Settle func(*attachment.Record, teardown.Outcome) attachment.State

// Always is the Settle that names one state.
func Always(s attachment.State) Settle {
	return func(*attachment.Record, teardown.Outcome) attachment.State { return s }
}

// Job says how records are torn down.
type Job struct {
	Why string
	// Release has the ipam key's plugin give back the addresses, too: where the primary cannot do it, or did not.
	Release bool
	Settle  Settle
	// Spare leaves further interfaces of those whose DEL is not over, see teardown.Plan.Spare.
	Spare bool
}

// Intent is a teardown of some records that is on disk but not carried out.
type Intent struct {
	job    Job
	recs   []*attachment.Record
	others map[attachment.Key][]teardown.Other
}

// Begin writes the intent to tear down into the caller's transaction. It has to be committed
// before Finish removes anything: cancellation of a plugin is SIGKILL. Records of one intent do not claim
// against each other.
func (e *Env) Begin(tx *journal.Tx, job Job, recs ...*attachment.Record) (*Intent, error) {
	in := &Intent{job: job, recs: recs, others: map[attachment.Key][]teardown.Other{}}
	for _, rec := range recs {
		others, err := e.Sharing(tx, rec)
		if err != nil {
			return nil, err
		}
		in.others[rec.Key] = slices.DeleteFunc(others, func(o teardown.Other) bool {
			return slices.ContainsFunc(recs, func(r *attachment.Record) bool { return r.Key == o.Record.Key })
		})
	}
	for _, rec := range recs {
		if err := journal.Move(rec, attachment.Tearing); err != nil {
			return nil, err
		}
		rec.Attempts++
		rec.Due = e.after(retry)
		rec.Note(e.Now(), "teardown begun: %s", job.Why)
		e.log(rec.Key, "teardown").WithField("cause", job.Why).Info("tearing down")
		if err := tx.Put(rec); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// Torn is what a teardown did with one record.
type Torn struct {
	Record  *attachment.Record
	Outcome teardown.Outcome
}

// Finish removes what is left, verifies and writes the outcomes, in the session
// that Begin's transaction was in.
func (e *Env) Finish(s *journal.Session, in *Intent) ([]Torn, error) {
	crash.At("teardown.intended")
	together := *e
	together.Kernel = teardown.Together(e.Kernel, in.recs...)
	work := make([]teardown.Work, len(in.recs))
	for i, rec := range in.recs {
		others := in.others[rec.Key]
		work[i] = teardown.Work{Record: rec, Plan: together.Plan(rec, others), Others: others}
		if in.job.Spare && e.pluginsAtWork(rec) {
			work[i].Plan.Spare(rec)
		}
	}
	var done []Torn
	crash.At("teardown.planned")
	for i, out := range teardown.Execute(e.Kernel, e.Node, work) {
		rec := in.recs[i]
		for _, x := range out.Removed {
			e.log(rec.Key, "remove").WithField("resource", x.String()).Info("removed")
		}
		if in.job.Release {
			out.Err = errors.Join(out.Err, e.release(rec, &out))
		}
		crash.At("teardown.released")
		e.settle(rec, out, in.job.Settle)
		done = append(done, Torn{rec, out})
	}
	err := s.Update(func(tx *journal.Tx) error {
		for _, rec := range in.recs {
			if err := tx.Put(rec); err != nil {
				return err
			}
		}
		return nil
	})
	crash.At("teardown.settled")
	if err != nil {
		return done, fmt.Errorf("write outcome of teardown: %w", err)
	}
	return done, nil
}

// TearDown is Begin and Finish for records by their keys. Keys without a record
// are left out of the answer.
func (e *Env) TearDown(s *journal.Session, job Job, keys ...attachment.Key) ([]Torn, error) {
	var in *Intent
	err := s.Update(func(tx *journal.Tx) error {
		if err := e.Enter(tx); err != nil {
			return err
		}
		var recs []*attachment.Record
		for _, k := range keys {
			rec, err := tx.Get(k)
			if err != nil {
				return err
			}
			if rec != nil {
				recs = append(recs, rec)
			}
		}
		var err error
		in, err = e.Begin(tx, job, recs...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return e.Finish(s, in)
}

// Plan reads the kernel and plans; nothing is changed.
func (e *Env) Plan(rec *attachment.Record, others []teardown.Other) teardown.Plan {
	var s teardown.Sight
	if rec.SameNode(e.Node) {
		s = teardown.Observe(e.Kernel, rec)
	}
	return teardown.Build(rec, e.Node, s, others)
}

// pluginsAtWork reports whether a plugin of the list may still be at an attachment's DEL. A runtime that tries for hours
// does not make that longer.
func (e *Env) pluginsAtWork(r *attachment.Record) bool {
	return r.Del != nil && r.Del.First.Since(e.Now()) < r.Settings.Grace
}

func (e *Env) settle(rec *attachment.Record, out teardown.Outcome, settle Settle) {
	now := e.Now()
	for _, x := range out.Removed {
		rec.Note(now, "removed %s", x)
	}
	err := out.Err
	rec.Spared = err == nil && out.Plan.Spares()
	if left := leftTo(out.Plan); err == nil && left != "" {
		rec.LastError, rec.Due = "", e.DueIn(rec)
		rec.Note(now, "%s: looked at again", left)
		e.log(rec.Key, "teardown").Info(left + ", a sweep looks again")
		return
	}
	if err == nil {
		err = journal.Move(rec, settle(rec, out))
	}
	rec.Claimed = out.Plan.Count(teardown.Claimed) > 0
	rec.Due = e.DueIn(rec)
	if err != nil {
		rec.LastError = err.Error()
		rec.Note(now, "teardown not finished: %s", rec.LastError)
		e.log(rec.Key, "teardown").WithError(err).Warn("not everything could be removed, a sweep will try again")
		return
	}
	rec.LastError = ""
	rec.Note(now, "torn down, now %s", rec.State)
}

// leftTo says to whom a plan without errors left something for now: the teardown has not ended with that, and the record
// is needed.
func leftTo(p teardown.Plan) string {
	switch {
	case p.Spares():
		return "further interfaces are left to the plugins that are called next"
	case p.Unsettled(): // whoever's ADD is under way will claim it or not
		return "something is left to an attachment that is not recorded"
	}
	return ""
}

// SettleDead is the Settle of an attachment that is dead: closed when the primary
// finished its part, else owed to it.
func (e *Env) SettleDead(r *attachment.Record, out teardown.Outcome) attachment.State {
	if !teardown.Acknowledged(r, cacheEntryThere(r)) {
		return attachment.Owed
	}
	if n := len(out.Removed); n > 0 {
		r.Note(e.Now(), "acknowledged, but left %d resources", n)
	}
	return attachment.Closed
}
