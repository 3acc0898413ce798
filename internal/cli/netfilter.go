package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/garbage"
	"github.com/backstop-cni/backstop/internal/netfilter"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// chains is a command's look at what plugins put into the node's netfilter.
type chains struct {
	a    *app
	env  *reconcile.Env
	nft  *netfilter.Conn
	ends garbage.Ends
	// want selects by the attachments that pieces are found by; nil: those that the journal knows.
	want func(attachment.Key) bool
	// unrecorded has those found, too, that only the runtime's cache knows.
	unrecorded bool
	// caches are the runtime's, nil until they are needed.
	caches *garbage.Caches
	// only, if it is not nil, is what a person has seen: remove leaves everything else alone.
	only []garbage.Item
}

// chains opens netfilter, and says what of it cannot be seen. The caller closes it.
func (a *app) chains(env *reconcile.Env, ends garbage.Ends) (*chains, error) {
	legacy, err := netfilter.Legacy()
	if err != nil {
		return nil, err
	}
	if legacy != "" && !a.toldLegacy {
		a.toldLegacy = true
		fmt.Fprintf(a.stderr, "backstopctl: warning: %s\n", legacy)
	}
	nft, err := netfilter.Open()
	if err != nil {
		return nil, err
	}
	return &chains{a: a, env: env, nft: nft, ends: ends}, nil
}

func (c *chains) close() { c.nft.Close() }

// needCaches is the answer of a look for which the runtime's caches have to be read first, without the journal's lock.
type needCaches struct{ dirs []string }

func (needCaches) Error() string { return "the runtime's caches have not been read" }

// find gives what is there of the attachments, judged. The runtime's cache, which may be large, is only needed when
// it could change the answer.
func (c *chains) find(tx *journal.Tx) ([]garbage.Item, error) {
	rules, err := c.nft.Read()
	if err != nil {
		return nil, err
	}
	// A record that cannot be read is told of by the commands themselves, and keeps nobody from the others.
	f, _ := garbage.NewFinder(c.env, tx, garbage.ReadCaches(nil))
	mine := rules.Find(c.wanted(f))
	if items := f.Netfilter(mine, c.ends); !c.unrecorded && !slices.ContainsFunc(items, dead) {
		return items, nil
	}
	if c.caches == nil {
		_, dirs, err := c.a.places(tx)
		return nil, errors.Join(err, needCaches{dirs})
	}
	f, _ = garbage.NewFinder(c.env, tx, c.caches)
	if c.unrecorded {
		mine = rules.Find(c.wanted(f))
	}
	owners := map[attachment.Netfilter][]netfilter.Owner{} // names may stand for others, too
	for _, p := range rules.Find(f.Attachments()) {
		owners[p.Netfilter] = p.Owners
	}
	for i, p := range mine {
		mine[i].Owners = owners[p.Netfilter]
	}
	return f.Netfilter(mine, c.ends), nil
}

func (c *chains) wanted(f *garbage.Finder) []attachment.Key {
	return slices.DeleteFunc(f.Attachments(), func(k attachment.Key) bool { return c.want != nil && !c.want(k) })
}

func dead(it garbage.Item) bool { return it.Life == attachment.Dead }

// plan is find in a transaction of its own.
func (c *chains) plan(ctx context.Context, j *journal.Journal) (items []garbage.Item, err error) {
	look := func(tx *journal.Tx) (err error) { items, err = c.find(tx); return err }
	err = c.a.view(ctx, j, look)
	if need := (needCaches{}); errors.As(err, &need) {
		c.caches = garbage.ReadCaches(need.dirs)
		err = c.a.view(ctx, j, look)
	}
	return items, err
}

// remove removes what is dead, some attachments' under each lock, and notes it in open records.
func (c *chains) remove(ctx context.Context, j *journal.Journal) (gone []garbage.Item, err error) {
	items, err := c.plan(ctx, j)
	for err == nil && slices.ContainsFunc(items, dead) {
		var some []garbage.Item
		var more bool
		some, more, err = c.removeSome(ctx, j)
		gone = append(gone, some...)
		if len(some) == 0 || !more {
			break
		}
	}
	return gone, err
}

func (c *chains) removeSome(ctx context.Context, j *journal.Journal) (gone []garbage.Item, more bool, err error) {
	s, err := j.LockWithin(ctx, c.a.lockWait)
	if err != nil {
		return nil, false, err
	}
	defer s.Unlock()
	var items []garbage.Item
	err = s.Update(func(tx *journal.Tx) error {
		// A pod's record may be in the spool still.
		if err := c.env.Enter(tx); err != nil {
			return err
		}
		items, err = c.find(tx)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	items, more = c.chunk(items)
	gone, err = garbage.RemoveNetfilter(c.nft, items)
	return gone, more, errors.Join(err, c.note(s, gone))
}

// chunk takes what is dead, and was dead when it was shown, of the first attachments.
func (c *chains) chunk(items []garbage.Item) (some []garbage.Item, more bool) {
	shown := map[attachment.Netfilter]bool{}
	for _, it := range c.only {
		shown[*it.Netfilter] = dead(it)
	}
	of := map[attachment.Key]bool{}
	for _, it := range items {
		switch {
		case !dead(it), c.only != nil && !shown[*it.Netfilter]:
		case of[it.Key]:
			some = append(some, it)
		case len(of) == reconcile.Chunk:
			more = true
		default:
			of[it.Key], some = true, append(some, it)
		}
	}
	return some, more
}

// note writes into the open records what was removed.
func (c *chains) note(s *journal.Session, gone []garbage.Item) error {
	removed := map[attachment.Key]int{}
	for _, it := range gone {
		removed[it.Key]++
	}
	if len(removed) == 0 {
		return nil
	}
	return s.Update(func(tx *journal.Tx) error {
		for k, n := range removed {
			r, err := tx.Get(k)
			if err != nil || r == nil {
				continue // closed: the history is not written anew; one that cannot be read is told of by verify
			}
			r.Note(c.env.Now(), "removed %d chains and rules from netfilter", n)
			if err := tx.Put(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// step is an item as a line of a plan.
func step(it garbage.Item) teardown.Step {
	st := teardown.Step{Resource: attachment.Resource{Kind: attachment.KindNetfilter, Share: attachment.Own, Netfilter: it.Netfilter}, Why: it.Why}
	switch {
	case it.Life == attachment.Live:
		st.Verdict = teardown.Claimed
	case it.Serves():
		st.Verdict = teardown.Kept
	case it.Life != attachment.Dead:
		st.Verdict = teardown.Unknown
	default:
		st.Verdict, st.Why = teardown.Delete, ""
	}
	return st
}
