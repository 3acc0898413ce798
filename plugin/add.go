package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
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
			return fail(types.ErrIOFailure, "backstop cannot record the attachment in "+cfg.Journal, advised(err))
		}
		c.env.Log.WithFields(c.fields("record")).WithError(advised(err)).Warn("the attachment is not recorded, its teardown will not be backstopped")
	}
	crash.At("add.stored")
	_, err = os.Stdout.Write(append(bytes.TrimSpace(cfg.PrevResult), '\n'))
	if err != nil {
		return fail(types.ErrIOFailure, "write result", err)
	}
	return nil
}

// add captures and records. What cannot be stored waits in the spool, unless the ADD has to fail for it.
func (c *call) add() error {
	rec, err := c.capture(false)
	if err != nil {
		rec.LastError = err.Error()
		c.env.Log.WithFields(c.fields("capture")).WithError(err).Warn("not everything could be read")
	}
	rec.Resources = slices.Clip(rec.Resources)
	crash.At("add.captured")
	captured := *rec
	err = c.store(rec)
	if err == nil || c.cfg.FailOnJournal {
		return err
	}
	where, kerr := c.journal.Keep(&captured)
	if kerr != nil {
		return errors.Join(err, kerr)
	}
	c.env.Log.WithFields(c.fields("record")).WithError(advised(err)).WithField("spool", where).Warn("the record waits in the spool: whoever can write the journal next takes it in")
	return nil
}

// store puts the record into the journal, heals what dead attachments left in the newcomer's way, and gives a few due
// records their sweep.
func (c *call) store(rec *attachment.Record) error {
	s, spooled, err := c.journal.LockOrSpool(context.Background(), lockWait, rec)
	if s != nil {
		defer s.Unlock()
	}
	if spooled != nil {
		if spooled.Taken() {
			return nil // somebody who had the lock stored it with their own
		}
		err = errors.Join(err, spooled.Drop())
	}
	if err != nil {
		return err
	}
	var heal, due []attachment.Key
	err = c.update(s, func(tx *journal.Tx) error {
		err := c.env.Enter(tx)
		if err != nil {
			return err
		}
		if heal, err = c.env.Place(tx, rec); err != nil {
			return err
		}
		due, err = c.env.Due(tx)
		return err
	})
	if err != nil {
		return err
	}
	crash.At("add.committed")
	c.heal(s, heal)
	crash.At("add.healed")
	c.env.SweepDue(s, due)
	return nil
}

// healLimit bounds the dead records that one pod start cleans up after.
const healLimit = 8

func (c *call) heal(s *journal.Session, keys []attachment.Key) {
	for _, k := range keys[:min(healLimit, len(keys))] {
		job := reconcile.Job{Why: fmt.Sprintf("its address or link name was given to %s", c.key), Release: true, Spare: true, Settle: c.env.SettleDead}
		_, err := c.env.TearDown(s, job, k)
		if err != nil {
			c.env.Log.WithFields(c.fields("heal")).WithField("cause", k.String()).WithError(err).Warn("leftovers of a dead attachment could not be removed")
		}
	}
}
