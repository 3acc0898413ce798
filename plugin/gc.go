package plugin

import (
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
	if !c.journal.Exists() {
		return nil
	}
	if err := c.gc(); err != nil && !cfg.FailOnJournal {
		c.env.Log.WithFields(c.fields("gc")).WithError(err).Warn("GC did not finish, a sweep will try again")
	} else if err != nil {
		return fail(types.ErrIOFailure, "GC of network "+cfg.Name+" did not finish", err)
	}
	return nil
}

func (c *call) gc() error {
	s, err := c.session()
	if err != nil {
		return err
	}
	defer s.Unlock()
	var dead, due []attachment.Key
	err = s.View(func(tx *journal.Tx) (err error) {
		if due, err = c.env.Due(tx); err != nil || c.cfg.ValidAttachments == nil {
			return err
		}
		return tx.Each(func(r *attachment.Record) error {
			if c.collectable(r) {
				dead = append(dead, r.Key)
			}
			return nil
		})
	})
	errs := []error{err}
	for some := range slices.Chunk(dead, reconcile.Chunk) {
		torn, err := c.env.TearDown(s, reconcile.Job{Why: "GC: the runtime does not list it", Release: true, Settle: c.env.SettleDead}, some...)
		errs = append(errs, err)
		for _, t := range torn {
			errs = append(errs, t.Outcome.Err)
		}
	}
	c.env.SweepDue(s, due)
	return errors.Join(errs...)
}

// collectable are the network's records that are not in the list and not live.
// Owed ones are clean already: they wait for the primary.
func (c *call) collectable(r *attachment.Record) bool {
	if r.Network != c.cfg.Name || r.State == attachment.Owed || !r.SameNode(c.env.Node) {
		return false
	}
	listed := slices.ContainsFunc(*c.cfg.ValidAttachments, func(a GCAttachment) bool {
		return a.ContainerID == r.ContainerID && a.IfName == r.IfName
	})
	return !listed && c.env.Collectable(r)
}
