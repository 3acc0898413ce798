package plugin

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// cmdGC removes what is left of this network's attachments that the runtime does
// not list and that are dead by backstop's own test: several runtimes may share a node. Without a list
// nothing is removed by list.
func cmdGC(args *skel.CmdArgs) error {
	cfg, problems, err := ParseConfig(args.StdinData)
	if err != nil {
		return fail(types.ErrDecodingFailure, err.Error(), nil)
	}
	c, err := open(cfg, args, os.Stderr)
	if err != nil {
		return fail(types.ErrIOFailure, "backstop cannot read the node", err)
	}
	defer c.close()
	c.warn(problems)
	if c.journal.Empty() {
		return nil
	}
	if err := c.gc(); err != nil && !cfg.FailOnJournal {
		c.env.Log.WithFields(c.fields("gc")).WithError(err).Warn("GC did not finish, a sweep will try again")
	} else if err != nil {
		return fail(types.ErrIOFailure, "GC of network "+cfg.Name+" did not finish", err)
	}
	return nil
}

// gc takes the lock anew for each chunk: pods start in between.
func (c *call) gc() error {
	var dead []attachment.Key
	errs := []error{c.env.TakeIn(context.Background(), c.journal, lockWait)}
	if c.cfg.ValidAttachments != nil {
		c.listed = map[GCAttachment]bool{}
		for _, a := range *c.cfg.ValidAttachments {
			c.listed[a] = true
		}
		err := c.journal.ViewWithin(context.Background(), lockWait, func(tx *journal.Tx) error {
			errs = append(errs, tx.Each(func(r *attachment.Record) error {
				if c.collectable(r) {
					dead = append(dead, r.Key)
				}
				return nil
			}))
			return nil
		})
		if err != nil {
			return err
		}
	}
	for some := range slices.Chunk(dead, reconcile.Chunk) {
		errs = append(errs, c.locked(func(s *journal.Session) error { return c.collect(s, some) }))
	}
	return errors.Join(append(errs, c.locked(c.sweepDue))...)
}

func (c *call) locked(fn func(*journal.Session) error) error {
	s, err := c.session()
	if err != nil {
		return err
	}
	defer s.Unlock()
	return fn(s)
}

// collect tears down what is still collectable under the lock: its pod may have come meanwhile.
func (c *call) collect(s *journal.Session, keys []attachment.Key) error {
	var errs []error
	err := s.View(func(tx *journal.Tx) error {
		keys = slices.DeleteFunc(keys, func(k attachment.Key) bool {
			r, err := tx.Get(k)
			errs = append(errs, err)
			return err != nil || r == nil || !c.collectable(r)
		})
		return nil
	})
	errs = append(errs, err)
	torn, err := c.env.TearDown(s, reconcile.Job{Why: "GC: the runtime does not list it", Release: true, Settle: c.env.SettleDead}, keys...)
	for _, t := range torn {
		errs = append(errs, t.Outcome.Err)
	}
	return errors.Join(append(errs, err)...)
}

func (c *call) sweepDue(s *journal.Session) error {
	var due []attachment.Key
	err := s.View(func(tx *journal.Tx) (err error) { due, err = c.env.Due(tx); return err })
	if err == nil {
		c.env.SweepDue(s, due)
	}
	return err
}

// collectable are the network's records that are not in the list and not live.
// Owed ones are clean already: they wait for the primary.
func (c *call) collectable(r *attachment.Record) bool {
	if r.Network != c.cfg.Name || r.State == attachment.Owed || !r.SameNode(c.env.Node) {
		return false
	}
	return !c.listed[GCAttachment{ContainerID: r.ContainerID, IfName: r.IfName}] && c.env.Collectable(r)
}
