package reconcile

import (
	"context"
	"slices"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// Enter begins a change of the journal: what waits in the spool goes first, since a record that came before a DEL must
// not be stored behind it.
func (e *Env) Enter(tx *journal.Tx) error {
	if err := tx.EnterBoot(e.Node.Now); err != nil {
		return err
	}
	err := tx.TakeIn(func(r *attachment.Record, waits bool) error {
		if !waits && overtaken(tx, r) {
			return nil
		}
		_, err := e.place(tx, r, waits && r.Key != e.Call)
		return err
	})
	if err != nil {
		e.Log.WithField("action", "spool").WithError(err).Warn("not every record in the spool could be taken in")
	}
	return nil
}

// overtaken reports whether the journal has a later word on an attachment than an entry of the spool. That an entry was
// removed is not waited for, and so a power cut may bring back one that was taken in long ago: before a DEL, perhaps.
func overtaken(tx *journal.Tx, r *attachment.Record) bool {
	old, err := tx.Get(r.Key)
	if err == nil && old != nil {
		return old.Node.Now.NotBefore(r.Node.Now) || old.Del != nil && old.Del.Last.NotBefore(r.Node.Now)
	}
	return err == nil && tx.ClosedSince(r.Key, r.Node.Now)
}

// TakeIn stores what waits in the spool, when there is any: for callers that begin with reading.
func (e *Env) TakeIn(ctx context.Context, j *journal.Journal, lockWait time.Duration) error {
	if j.SpoolEmpty() {
		return nil
	}
	return j.UpdateWithin(ctx, lockWait, e.Enter)
}

// Place stores the record in place of an older one of the same key, and tells
// which dead records have what may misroute it.
func (e *Env) Place(tx *journal.Tx, rec *attachment.Record) (heal []attachment.Key, err error) {
	return e.place(tx, rec, false)
}

// place is Place. A record that is placed for a process which waits has to have nothing to do with any other, so that
// anybody of this node can do it: else that process does (ErrLater).
func (e *Env) place(tx *journal.Tx, rec *attachment.Record, forOther bool) (heal []attachment.Key, err error) {
	now := e.Now()
	old, err := tx.Get(rec.Key)
	if forOther && (err != nil || old != nil || !rec.SameNode(e.Node)) {
		return nil, journal.ErrLater
	}
	if err != nil {
		e.log(rec.Key, "record").WithError(err).Warn("an older record of this attachment cannot be read and is replaced")
	} else if old != nil {
		if err := e.supersede(tx, rec, old); err != nil {
			return nil, err
		}
		old.Note(now, "superseded by another ADD")
		if err := tx.Remember(old); err != nil {
			return nil, err
		}
	}
	others, err := e.SharingAddress(tx, rec)
	if forOther && (err != nil || len(others) > 0) {
		return nil, journal.ErrLater
	}
	if err != nil {
		return nil, err
	}
	rec.Found = teardown.Newcomer(rec, old, others)
	rec.Due = e.DueIn(rec)
	rec.Note(now, "ADD recorded: %d resources", len(rec.Resources))
	for _, x := range rec.Found {
		rec.Note(now, "found and not claimed: %s", x)
	}
	for _, o := range others {
		if o.Life == attachment.Dead || released(o.Record) {
			if mayMisroute(o.Record) {
				heal = append(heal, o.Record.Key)
			}
			continue
		}
		rec.Note(now, "shares an address or a link's name with %s (%s)", o.Record.Key, o.Life)
		e.log(rec.Key, "record").WithField("cause", o.Record.Key.String()).Warnf("shares an address or a link's name with another attachment (%s)", o.Life)
	}
	return heal, tx.Put(rec)
}

// released reports whether an attachment's address was given back, although its netns is still there: runtimes remove
// that only after the DEL, and the next pod may have the address by then.
func released(r *attachment.Record) bool {
	return r.State == attachment.Deferred && teardown.Acknowledged(r, cacheEntryThere(r))
}

// mayMisroute reports whether a dead record can have left something that stands in a newcomer's way, and that
// backstop may remove.
func mayMisroute(r *attachment.Record) bool {
	return !recordOnly(r) && !r.Clean()
}

// supersede keeps what an older ADD of the same key left in the node and the newer one does
// not have, so that the DEL removes both. What is gone by now is nobody's, and must not be claimed against the next
// pod that makes the same; what another record holds is that one's.
func (e *Env) supersede(tx *journal.Tx, rec, old *attachment.Record) error {
	if !old.SameNode(rec.Node) {
		return nil
	}
	others, err := e.SharingAddress(tx, old)
	if err != nil {
		return err
	}
	sight := teardown.Observe(e.Kernel, old)
	for i, x := range old.Resources {
		held := slices.ContainsFunc(others, func(o teardown.Other) bool { return o.Record.Holds(x) && !o.Record.Clean() })
		if x.Share == attachment.Own && !rec.Holds(x) && !held && !sight.Resources[i].Gone() {
			x.Superseded = true
			rec.Resources = append(rec.Resources, x)
		}
	}
	return nil
}
