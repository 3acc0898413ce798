package adopt

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
)

// Store records what a plan can adopt, some at a time, so that no pod's start waits long for the lock. What somebody
// else recorded meanwhile stays as that one wrote it.
func (a *Adopter) Store(ctx context.Context, items []Item) error {
	var todo []*Item
	for i := range items {
		if items[i].Verdict == Adopt {
			todo = append(todo, &items[i])
		}
	}
	for some := range slices.Chunk(todo, reconcile.Chunk) {
		err := a.Journal.UpdateWithin(ctx, a.LockWait, func(tx *journal.Tx) error {
			if err := a.Env.Enter(tx); err != nil {
				return err
			}
			for _, it := range some {
				if err := a.store(tx, it); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			for _, it := range some { // nothing of the transaction was written
				it.Verdict, it.Why = Left, "the journal could not be written"
			}
			return err
		}
	}
	return nil
}

func (a *Adopter) store(tx *journal.Tx, it *Item) error {
	r := it.record
	old, err := tx.Get(*it.Key)
	switch now, nerr := kernel.NamespaceAt(it.Netns); {
	case err != nil:
		it.Verdict, it.Why = Left, "a record of it is in the journal and cannot be read: "+err.Error()
		return nil
	case old != nil:
		it.Verdict, it.Why = Recorded, "recorded meanwhile, "+string(old.State)
		return nil
	case tx.ClosedSince(*it.Key, r.Node.Now), nerr != nil || now != r.NetnsID, !bytes.Equal(reconcile.ReadCacheEntry(it.File), it.entry):
		it.Verdict, it.Why = Left, "it was deleted or added anew meanwhile"
		return nil
	}
	r.Note(a.Env.Now(), "adopted from the runtime's cache entry %s; a replay has to do without: %s", it.File, strings.Join(it.Missing, "; "))
	if _, err := a.Env.Place(tx, r); err != nil {
		return err
	}
	it.Verdict = Adopted
	return nil
}
