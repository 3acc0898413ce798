package plugin

import (
	"bytes"
	"fmt"
	"os"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// cmdAdd records the attachment and passes prevResult on as it came.
func cmdAdd(args *skel.CmdArgs, rules *kernel.Ahead) error {
	cfg, cerr := strict(args)
	if cerr != nil {
		return cerr
	}
	if cfg.PrevResult == nil {
		return fail(types.ErrInvalidNetworkConfig, "prevResult is missing: backstop must be called as a chained plugin, behind the one that makes the interface", nil)
	}
	if cfg.PrevResult[0] != '{' {
		return fail(types.ErrInvalidNetworkConfig, "prevResult: want an object", nil)
	}
	c, err := open(cfg, args, os.Stderr)
	if err != nil {
		return fail(types.ErrIOFailure, "backstop cannot read the node", err)
	}
	defer c.close()
	c.rules = rules
	if err := c.key.Valid(); err != nil {
		return fail(types.ErrInvalidEnvironmentVariables, err.Error(), nil)
	}
	if err := c.add(); err != nil {
		if cfg.FailOnJournal {
			return fail(types.ErrIOFailure, "backstop cannot record the attachment in "+cfg.Journal, err)
		}
		c.env.Log.WithFields(c.fields("record")).WithError(err).Warn("the attachment is not recorded, its teardown will not be backstopped")
	}
	_, err = os.Stdout.Write(append(bytes.TrimSpace(cfg.PrevResult), '\n'))
	if err != nil {
		return fail(types.ErrIOFailure, "write result", err)
	}
	return nil
}

// add captures, records, heals what dead attachments left in the newcomer's
// way, and gives a few due records their sweep.
func (c *call) add() error {
	rec, err := c.capture(false)
	if err != nil {
		rec.LastError = err.Error()
		c.env.Log.WithFields(c.fields("capture")).WithError(err).Warn("not everything could be read")
	}
	s, err := c.session()
	if err != nil {
		return err
	}
	defer s.Unlock()
	var heal, due []attachment.Key
	err = s.Update(func(tx *journal.Tx) error {
		if err := tx.EnterBoot(c.env.Node.Now); err != nil {
			return err
		}
		var err error
		if heal, err = c.place(tx, rec); err != nil {
			return err
		}
		due, err = c.env.Due(tx)
		return err
	})
	if err != nil {
		return err
	}
	c.heal(s, heal)
	c.env.SweepDue(s, due)
	return nil
}

// place stores the record in place of an older one of the same key, and tells
// which dead records have what may misroute it.
func (c *call) place(tx *journal.Tx, rec *attachment.Record) (heal []attachment.Key, err error) {
	now := c.env.Now()
	old, err := tx.Get(rec.Key)
	if err != nil {
		c.env.Log.WithFields(c.fields("record")).WithError(err).Warn("an older record of this attachment cannot be read and is replaced")
	} else if old != nil {
		c.supersede(rec, old)
		old.Note(now, "superseded by another ADD")
		if err := tx.Remember(old); err != nil {
			return nil, err
		}
	}
	others, err := c.env.SharingAddress(tx, rec)
	if err != nil {
		return nil, err
	}
	rec.Found = teardown.Newcomer(rec, old, others)
	rec.Due = c.env.DueIn(rec)
	rec.Note(now, "ADD recorded: %d resources", len(rec.Resources))
	for _, x := range rec.Found {
		rec.Note(now, "found and not claimed: %s", x)
	}
	for _, o := range others {
		if o.Life == attachment.Dead {
			if mayMisroute(o.Record) {
				heal = append(heal, o.Record.Key)
			}
			continue
		}
		rec.Note(now, "shares an address or a link's name with %s (%s)", o.Record.Key, o.Life)
		c.env.Log.WithFields(c.fields("record")).WithField("cause", o.Record.Key.String()).Warnf("shares an address or a link's name with another attachment (%s)", o.Life)
	}
	return heal, tx.Put(rec)
}

// mayMisroute reports whether a dead record can have left something that stands in a newcomer's way, and that
// backstop may remove.
func mayMisroute(r *attachment.Record) bool {
	switch {
	case teardown.Mode(r.Settings.Teardown) == teardown.Never, r.Spared:
		return false
	case r.State == attachment.Owed:
		return r.Claimed // others are clean already
	}
	return true
}

// supersede keeps what an older ADD of the same key left in the node and the newer one does
// not have, so that the DEL removes both. What is gone by now is nobody's, and must not be claimed against the next
// pod that makes the same.
func (c *call) supersede(rec, old *attachment.Record) {
	if !old.SameNode(rec.Node) {
		return
	}
	sight := teardown.Observe(c.env.Kernel, old)
	for i, x := range old.Resources {
		if x.Share == attachment.Own && !rec.Holds(x) && !sight.Resources[i].Gone() {
			x.Superseded = true
			rec.Resources = append(rec.Resources, x)
		}
	}
}

// healLimit bounds the dead records that one pod start cleans up after.
const healLimit = 8

func (c *call) heal(s *journal.Session, keys []attachment.Key) {
	for _, k := range keys[:min(healLimit, len(keys))] {
		job := reconcile.Job{Why: fmt.Sprintf("its address or link name was given to %s", c.key), Release: true, Settle: c.env.SettleDead}
		_, err := c.env.TearDown(s, job, k)
		if err != nil {
			c.env.Log.WithFields(c.fields("heal")).WithField("cause", k.String()).WithError(err).Warn("leftovers of a dead attachment could not be removed")
		}
	}
}
