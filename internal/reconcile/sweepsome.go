package reconcile

import (
	"errors"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// Why a sweep tears down.
const (
	whyLeft = "the primary's DEL left it"
	whyDied = "it died without any DEL"
)

// sweepSome is sweepOne for many records: those to examine share a teardown, and with it one look at the node's rules;
// the others share a transaction. Where that fails each is handled alone, so that one record does not stop the others.
func (e *Env) sweepSome(s *journal.Session, keys []attachment.Key) []Swept {
	out, recs := make([]Swept, len(keys)), make([]*attachment.Record, len(keys))
	err := s.View(func(tx *journal.Tx) error {
		for i, k := range keys {
			out[i].Key = k
			recs[i], out[i].Err = tx.Get(k)
		}
		return nil
	})
	var light []int
	examined := map[string][]int{}
	for i, rec := range recs {
		if out[i].Err = errors.Join(out[i].Err, err); out[i].Err != nil || rec == nil {
			continue
		}
		out[i].State, out[i].Action = rec.State, e.decideSweep(rec)
		switch {
		case out[i].Action == teardown.Examine && recordOnly(rec):
			out[i] = e.sweepOne(s, rec.Key)
		case out[i].Action == teardown.Examine:
			examined[whyExamined(rec)] = append(examined[whyExamined(rec)], i)
		case !e.nothingToWrite(rec, out[i].Action):
			light = append(light, i)
		}
	}
	crash.At("sweep.decided")
	for _, why := range []string{whyLeft, whyDied} {
		e.examineSome(s, why, examined[why], out)
	}
	e.lightlySome(s, light, recs, out)
	return out
}

func (e *Env) examineSome(s *journal.Session, why string, which []int, out []Swept) {
	if len(which) == 0 {
		return
	}
	at := map[attachment.Key]int{}
	var keys []attachment.Key
	for _, i := range which {
		at[out[i].Key] = i
		keys = append(keys, out[i].Key)
	}
	torn, err := e.TearDown(s, e.examination(why), keys...)
	if len(torn) == 0 && err != nil {
		for _, i := range which {
			out[i] = e.sweepOne(s, out[i].Key)
		}
		return
	}
	for _, t := range torn {
		i := at[t.Record.Key]
		out[i].Plan, out[i].State, out[i].Err = t.Outcome.Plan, t.Record.State, errors.Join(err, t.Outcome.Err)
	}
}

func (e *Env) lightlySome(s *journal.Session, which []int, recs []*attachment.Record, out []Swept) {
	if len(which) == 0 {
		return
	}
	err := s.Update(func(tx *journal.Tx) error {
		if err := e.Enter(tx); err != nil {
			return err
		}
		for _, i := range which {
			if out[i].Err = e.lightly(recs[i], out[i].Action); out[i].Err != nil {
				continue
			}
			if err := tx.Put(recs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	for _, i := range which {
		if err != nil {
			out[i] = e.sweepOne(s, out[i].Key)
		} else {
			out[i].State = recs[i].State
		}
	}
}

// whyExamined says why a record's leftovers are looked for.
func whyExamined(r *attachment.Record) string {
	if r.State == attachment.Attached {
		return whyDied
	}
	return whyLeft
}

// examination is a sweep's teardown.
func (e *Env) examination(why string) Job {
	return Job{Why: why, Release: true, Spare: true, Settle: e.SettleDead}
}

// nothingToWrite reports whether a sweep leaves a record as it is.
func (e *Env) nothingToWrite(r *attachment.Record, a teardown.SweepAction) bool {
	return a == teardown.Wait && r.DeadSince == nil && (r.Due == attachment.Moment{} || r.Due.Since(e.Now()) < 0)
}
