package reconcile

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// Swept is what a sweep did with one record.
type Swept struct {
	Key    attachment.Key
	Action teardown.SweepAction
	State  attachment.State // afterwards
	Plan   teardown.Plan    // of what was examined
	Err    error
}

// Chunk bounds the attachments that are handled under one lock.
const Chunk = 128

// SweepAll handles every record whose grace is over, in chunks, so that pods can
// start in between. What fails on one record does not stop the others.
func (e *Env) SweepAll(ctx context.Context, j *journal.Journal, lockWait time.Duration, each func(Swept)) error {
	var keys []attachment.Key
	errs := []error{e.TakeIn(ctx, j, lockWait)}
	errs = append(errs, j.ViewWithin(ctx, lockWait, func(tx *journal.Tx) error {
		return tx.Each(func(r *attachment.Record) error { keys = append(keys, r.Key); return nil })
	}))
	for some := range slices.Chunk(keys, Chunk) {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, e.sweepLocked(ctx, j, lockWait, some, each))
	}
	return errors.Join(append(errs, ctx.Err())...)
}

func (e *Env) sweepLocked(ctx context.Context, j *journal.Journal, lockWait time.Duration, keys []attachment.Key, each func(Swept)) error {
	s, err := j.LockWithin(ctx, lockWait)
	if err != nil {
		return err
	}
	defer s.Unlock()
	for _, swept := range e.sweepSome(s, keys) {
		each(swept)
	}
	return nil
}

// Bounds of the sweep at the end of an ADD or DEL, which a pod's start pays for.
const (
	shortRecords = 4
	shortTime    = 20 * time.Millisecond
)

// sampleEvery is how many calls share one look at a record that nothing is due for: it costs as much as two readings of
// the kernel, and a node's calls are many.
const sampleEvery = 4

// Due gives the records that the sweep at the end of an ADD or DEL should see:
// those whose time has come and, now and then, one of the others if it has died unnoticed.
func (e *Env) Due(tx *journal.Tx) ([]attachment.Key, error) {
	due, err := tx.Due(e.Node.Now, shortRecords)
	if err != nil || len(due) > 0 || rand.IntN(sampleEvery) > 0 {
		return due, err
	}
	if k, ok := tx.Sample(); ok {
		r, err := tx.Get(k)
		if err == nil && r != nil && r.State == attachment.Attached && r.DeadSince == nil && e.Life(r.Claim()) == attachment.Dead {
			due = append(due, k)
		}
	}
	return due, nil
}

// SweepDue handles a few due records within the caller's session, so that a node
// without any agent converges too.
func (e *Env) SweepDue(s *journal.Session, due []attachment.Key) {
	end := time.Now().Add(shortTime)
	for _, k := range due[:min(shortRecords, len(due))] {
		if time.Now().After(end) {
			return
		}
		if r := e.sweepOne(s, k); r.Err != nil {
			e.log(k, "sweep").WithError(r.Err).Warn("sweep of a due record failed")
		}
	}
}

// Bounds of the look at dead records that a DEL of an unknown attachment takes.
const (
	deadLooked = 64
	deadTorn   = 8
)

// SweepDead removes what dead attachments left, without waiting for a grace that
// protects no running DEL, and handles a few due records, within the caller's session. It is for the DEL that runtimes
// send after an ADD that failed before backstop saw it: "file exists" over a dead pod's leftovers, say. While every ADD
// fails, no other call would sweep at all.
func (e *Env) SweepDead(s *journal.Session) error {
	var dead, due []attachment.Key
	err := s.View(func(tx *journal.Tx) (err error) {
		if due, err = e.Due(tx); err != nil {
			return err
		}
		keys, err := tx.Soonest(e.Node.Now, deadLooked)
		for _, k := range append(keys, tx.Some(deadLooked)...) {
			if slices.Contains(dead, k) {
				continue
			}
			r, err := tx.Get(k)
			if err == nil && r != nil && len(dead) < deadTorn && r.State != attachment.Owed && r.SameNode(e.Node) && e.Collectable(r) {
				dead = append(dead, k)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	var errs []error
	if len(dead) > 0 {
		torn, err := e.TearDown(s, Job{Why: "dead, and another pod's ADD may have failed for it", Release: true, Settle: e.SettleDead}, dead...)
		errs = append(errs, err)
		for _, t := range torn {
			errs = append(errs, t.Outcome.Err)
		}
	}
	e.SweepDue(s, slices.DeleteFunc(due, func(k attachment.Key) bool { return slices.Contains(dead, k) }))
	return errors.Join(errs...)
}

// Collectable reports whether backstop may remove what an attachment left: it is dead, and no plugin of the list can still be at
// work on its DEL. That is over when the grace is, or when the runtime's cache entry, which was there at the DEL, is gone.
func (e *Env) Collectable(r *attachment.Record) bool {
	if recordOnly(r) || e.Life(r.Claim()) != attachment.Dead {
		return false
	}
	if r.Spared {
		return !e.pluginsAtWork(r)
	}
	if r.Del == nil || r.State != attachment.Deferred || r.Del.Last.Since(e.Now()) >= r.Settings.Grace {
		return true
	}
	return r.Replay != nil && r.Replay.CacheFile != "" && !cacheEntryThere(r)
}

func (e *Env) sweepOne(s *journal.Session, k attachment.Key) Swept {
	out := Swept{Key: k}
	var rec *attachment.Record
	out.Err = s.View(func(tx *journal.Tx) (err error) { rec, err = tx.Get(k); return err })
	if out.Err != nil || rec == nil {
		return out
	}
	out.State = rec.State
	out.Action = e.decideSweep(rec)
	switch {
	case out.Action == teardown.Examine:
		out.Plan, out.Err = e.examine(s, rec)
	case e.nothingToWrite(rec, out.Action):
		return out
	default:
		out.Err = s.Update(func(tx *journal.Tx) error {
			if err := e.Enter(tx); err != nil {
				return err
			}
			if err := e.lightly(rec, out.Action); err != nil {
				return err
			}
			return tx.Put(rec)
		})
	}
	out.State = rec.State
	return out
}

// PlanSweep says what a sweep would do with a record now, and changes nothing.
func (e *Env) PlanSweep(rec *attachment.Record, others []teardown.Other) Swept {
	s := Swept{Key: rec.Key, State: rec.State, Action: e.decideSweep(rec)}
	if s.Action == teardown.Examine {
		s.Plan = e.Plan(rec, others)
	}
	if recordOnly(rec) {
		s.Plan.Leave(`teardown is "never"`)
		return s
	}
	if s.Action == teardown.Examine || s.Action == teardown.Forget {
		PlanRelease(rec, &s.Plan)
	}
	return s
}

func (e *Env) decideSweep(r *attachment.Record) teardown.SweepAction {
	in := teardown.SweepInput{State: r.State, Life: e.Life(r.Claim()), SameNode: r.SameNode(e.Node), DeadFor: -1, Grace: r.Settings.Grace,
		Doubtful: r.Doubtful(), Acknowledged: teardown.Acknowledged(r, cacheEntryThere(r)), Claimed: r.Claimed, Spared: r.Spared && e.pluginsAtWork(r)}
	now := e.Now()
	if r.Del != nil {
		in.SinceDel = r.Del.Last.Since(now)
	}
	if r.DeadSince != nil {
		in.DeadFor = r.DeadSince.Since(now)
	}
	return teardown.DecideSweep(in)
}

// lightly does what needs no look at the kernel.
func (e *Env) lightly(r *attachment.Record, a teardown.SweepAction) error {
	now := e.Now()
	switch a {
	case teardown.MarkDead:
		r.DeadSince = &now
		r.Note(now, "no DEL came and it is dead: its grace begins")
		e.log(r.Key, "sweep").Info("dead without any DEL, its grace begins")
	case teardown.Forget:
		if !recordOnly(r) {
			if err := e.Release(r); err != nil {
				return err
			}
		}
		to := attachment.Owed
		if recordOnly(r) || r.Released || teardown.Acknowledged(r, cacheEntryThere(r)) {
			to = attachment.Closed
		}
		if err := journal.Move(r, to); err != nil {
			return err
		}
		r.Note(now, "recorded in another boot or network namespace: the kernel part is forgotten, now %s", r.State)
		e.log(r.Key, "sweep").WithField("state", r.State).Info("record of another boot: kernel part forgotten")
	case teardown.Wait:
		if r.State == attachment.Attached && r.DeadSince != nil && e.Life(r.Claim()) == attachment.Live {
			r.DeadSince = nil
		}
	}
	r.Due = e.DueIn(r)
	return nil
}

// examine looks for leftovers of a record whose grace is over, removes them and settles.
func (e *Env) examine(s *journal.Session, rec *attachment.Record) (teardown.Plan, error) {
	if recordOnly(rec) {
		return e.closeUntouched(s, rec)
	}
	torn, err := e.TearDown(s, e.examination(whyExamined(rec)), rec.Key)
	if len(torn) == 0 {
		return teardown.Plan{}, err
	}
	*rec = *torn[0].Record
	return torn[0].Outcome.Plan, errors.Join(err, torn[0].Outcome.Err)
}

// recordOnly reports whether an attachment's configuration has teardown "never".
func recordOnly(r *attachment.Record) bool {
	return teardown.Mode(r.Settings.Teardown) == teardown.Never
}

func (e *Env) closeUntouched(s *journal.Session, rec *attachment.Record) (plan teardown.Plan, err error) {
	err = s.Update(func(tx *journal.Tx) error {
		others, err := e.Sharing(tx, rec)
		if err != nil {
			return err
		}
		plan = e.Plan(rec, others)
		if err := journal.Move(rec, attachment.Closed); err != nil {
			return err
		}
		rec.Note(e.Now(), "%d resources are left: teardown is %q", plan.Count(teardown.Delete), teardown.Never)
		return tx.Put(rec)
	})
	return plan, err
}

// DueIn is when a sweep should see a record in its present state.
func (e *Env) DueIn(r *attachment.Record) attachment.Moment {
	switch r.State {
	case attachment.Attached:
		if r.DeadSince != nil {
			return e.after(r.Settings.Grace)
		}
		return attachment.Moment{} // its DEL, or a sweep that looks at all, or a sample
	case attachment.Deferred:
		return e.after(r.Settings.Grace)
	case attachment.Tearing:
		if r.Spared {
			return r.Del.First.Add(r.Settings.Grace)
		}
		return e.after(retry)
	}
	return e.after(time.Hour) // owed: a replay's business, no sweep's
}
