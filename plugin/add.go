package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/backstop-cni/backstop/attachment"
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
	s, spooled, err := c.journal.LockOrSpool(context.Background(), lockWait, rec)
	if err != nil {
		return c.keepSpooled(spooled, err)
	}
	defer s.Unlock()
	if spooled != nil {
		if spooled.Taken() {
			return nil // somebody who had the lock stored it with their own
		}
		if err := spooled.Drop(); err != nil {
			return err
		}
	}
	var heal, due []attachment.Key
	err = s.Update(func(tx *journal.Tx) error {
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
	c.heal(s, heal)
	c.env.SweepDue(s, due)
	return nil
}

// keepSpooled is for a lock that was not had in time: the record stays in the spool, where the next one takes it in.
func (c *call) keepSpooled(p *journal.Spooled, busy error) error {
	if p == nil {
		return busy
	}
	if p.Taken() {
		return nil
	}
	if c.cfg.FailOnJournal || !errors.Is(busy, journal.ErrBusy) {
		return errors.Join(busy, p.Drop())
	}
	if err := p.Keep(); err != nil {
		return errors.Join(busy, err)
	}
	c.env.Log.WithFields(c.fields("record")).WithError(busy).Warn("the record waits in the spool, whoever has the journal next takes it in")
	return nil
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
