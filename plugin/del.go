package plugin

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"github.com/backstop-cni/backstop/internal/primary"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// runDel serves DEL without skel, which fails a DEL for an odd netns, version or
// id: a failing DEL stops the list before the primary is reached.
func runDel(stdin io.Reader, stdout, stderr io.Writer) int {
	b, err := io.ReadAll(stdin)
	if err != nil {
		write(stdout, "", fail(types.ErrIOFailure, "read configuration from stdin", err))
		return 1
	}
	cfg, problems, err := ParseConfig(b)
	if err != nil {
		write(stdout, "", fail(types.ErrDecodingFailure, err.Error(), nil))
		return 1
	}
	args := &skel.CmdArgs{
		ContainerID: os.Getenv("CNI_CONTAINERID"), Netns: os.Getenv("CNI_NETNS"), IfName: os.Getenv("CNI_IFNAME"),
		Args: os.Getenv("CNI_ARGS"), Path: os.Getenv("CNI_PATH"),
	}
	c, err := open(cfg, args, stderr)
	if err != nil {
		log, done := newLogger(cfg, stderr)
		defer done()
		log.WithField("action", "del").WithError(err).Error("backstop cannot read the node, the DEL goes on without it")
		return 0
	}
	defer c.close()
	c.warn(problems)
	if err := c.del(); err != nil {
		c.env.Log.WithFields(c.fields("del")).WithError(advised(err)).Error("DEL goes on without backstop's part, a sweep will try again")
	}
	return 0
}

var (
	// errNothing ends a transaction that has nothing to write.
	errNothing = errors.New("nothing to do")
	// errUnasked ends one that found a record after all: an ADD was at it when this DEL began.
	errUnasked = errors.New("the primary has not been asked")
)

// unasked is the answer of a primary that had not to be asked, since nothing was recorded.
const unasked teardown.Probe = "not asked"

// del decides and acts. Its errors are for the log.
func (c *call) del() error {
	// An id that the spec forbids was never recorded, and must not become a key.
	if c.key.Valid() != nil || (c.cfg.PrevResult == nil && c.journal.Empty()) {
		return nil
	}
	probe, err := c.probe()
	if err != nil {
		return err
	}
	crash.At("del.probed")
	err = c.act(probe)
	if errors.Is(err, errUnasked) { // not under the lock
		err = c.act(c.ask())
	}
	return err
}

// act decides and does it, within one session.
func (c *call) act(probe teardown.Probe) error {
	s, err := c.session()
	if err != nil {
		return err
	}
	defer s.Unlock()
	intent, err := c.decide(s, probe)
	if errors.Is(err, errNothing) {
		return c.env.SweepDead(s)
	}
	if err != nil || intent == nil {
		return err
	}
	if _, err := c.env.Finish(s, intent); err != nil {
		return err
	}
	if c.cfg.Teardown != teardown.Always || len(c.cfg.Probe) == 0 {
		return nil
	}
	s.Unlock() // no probe is asked while others wait for the lock
	return c.askAfter()
}

// probe asks the primary before the lock is taken, and only when it matters.
func (c *call) probe() (teardown.Probe, error) {
	if len(c.cfg.Probe) == 0 || c.cfg.Teardown != teardown.Unreachable {
		return teardown.NotConfigured, nil
	}
	if c.cfg.PrevResult == nil {
		recorded := false
		err := c.journal.ViewWithin(context.Background(), lockWait, func(tx *journal.Tx) error {
			keys, err := tx.ByContainer(c.key.ContainerID, c.key.IfName)
			recorded = len(keys) > 0
			return err
		})
		if errors.Is(err, journal.ErrDamaged) {
			err = nil // it is begun anew under the lock, and then there may be a record
		}
		if err != nil || !recorded {
			return unasked, err
		}
	}
	return c.ask(), nil
}

func (c *call) ask() teardown.Probe {
	if primary.Wait(context.Background(), c.cfg.Probe, c.cfg.ProbeTimeout, c.cfg.Wait) {
		return teardown.Reachable
	}
	return teardown.Away
}

// decide finds the record, notes the DEL and either defers it or writes the
// intent to tear down.
func (c *call) decide(s *journal.Session, probe teardown.Probe) (intent *reconcile.Intent, err error) {
	var due []attachment.Key
	err = c.update(s, func(tx *journal.Tx) error {
		if err := c.env.Enter(tx); err != nil {
			return err
		}
		rec, err := c.find(tx)
		if err != nil {
			return err
		}
		if rec != nil && probe == unasked {
			return errUnasked
		}
		sit := teardown.Situation{Mode: c.cfg.Teardown, Probe: probe, HaveRecord: rec != nil, HaveResult: c.cfg.PrevResult != nil,
			DelCount: 1, EscalateAfter: c.cfg.EscalateAfter}
		if rec != nil && rec.Key != c.key {
			sit.Doubtful = c.env.Life(rec.Claim()) != attachment.Dead
		}
		if rec != nil && rec.Del != nil {
			sit.DelCount = rec.Del.Count
			if c.isAnotherTry(rec.Del) {
				sit.DelCount++
			}
		}
		if sit.MayEscalate() {
			sit.Running = anotherDel(c.key)
		}
		d := teardown.Decide(sit)
		if d.Action == teardown.Nothing {
			return errNothing
		}
		if d.Record {
			// Its part is done. What has its address by now, after a reboot for instance, is somebody else's.
			if tx.WasClosed(c.key.ContainerID, c.key.IfName, c.result.IPs) {
				return errNothing
			}
			rec = c.recordNow()
		}
		c.noteDel(rec, probe, sit.Doubtful)
		if d.Action == teardown.TearDown {
			intent, err = c.env.Begin(tx, c.job(d, probe), rec)
			return err
		}
		if due, err = c.env.Due(tx); err != nil {
			return err
		}
		return c.deferTo(tx, rec, d.Why)
	})
	if err == nil && intent == nil {
		crash.At("del.deferred")
		c.env.SweepDue(s, due)
	}
	return intent, err
}

// find looks under the call's own key and then, since containerd calls DEL under
// the name that the network has now, under the container and interface alone.
func (c *call) find(tx *journal.Tx) (*attachment.Record, error) {
	r, err := tx.Get(c.key)
	if err != nil || r != nil {
		return r, err
	}
	keys, err := tx.ByContainer(c.key.ContainerID, c.key.IfName)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	for _, k := range keys {
		// What is owed is clean: a DEL is for one that is not.
		if r, err = tx.Get(k); err == nil && r != nil && r.State != attachment.Owed {
			break
		}
	}
	if r != nil {
		c.env.Log.WithFields(c.fields("del")).WithField("cause", "recorded as "+r.Key.String()).Info("record is under another network's name")
	}
	return r, err
}

// recordNow makes the record that no ADD made, so that the teardown can be
// finished later if it is cut short.
func (c *call) recordNow() *attachment.Record {
	rec, err := c.capture(true)
	if err != nil {
		c.env.Log.WithFields(c.fields("capture")).WithError(err).Info("recorded at DEL, not everything could be read")
	}
	rec.Note(c.env.Now(), "recorded at DEL from prevResult and the kernel: %d resources", len(rec.Resources))
	return rec
}

// noteDel keeps what a replay will need: the runtime may delete its cache entry
// even if this DEL fails, and CNI_PATH is nowhere else.
func (c *call) noteDel(rec *attachment.Record, probe teardown.Probe, doubtful bool) {
	now := c.env.Now()
	if doubtful && rec.Del != nil && !rec.Doubtful() {
		rec.Note(now, "DEL under network %s, primary %s", c.key.Network, probe)
		return // its own DEL came before: what that one began stands
	}
	if rec.Del == nil {
		rec.Del = &attachment.Del{}
	}
	another := rec.Del.Count == 0 || c.isAnotherTry(rec.Del)
	file := reconcile.CacheFile(c.cfg.RuntimeCacheDir, rec.Key)
	entry := reconcile.ReadCacheEntry(file)
	had := rec.Replay != nil && len(rec.Replay.CacheEntry) > 0
	rec.Del.Lost = entry == nil && had && (rec.Del.Refused || rec.Del.Lost)
	if rec.Del.Last = now; rec.Del.First == (attachment.Moment{}) {
		rec.Del.First = now
	}
	rec.Del.Refused = probe == teardown.Away
	if rec.Del.Under = ""; doubtful {
		rec.Del.Under = c.key.Network
		rec.Note(now, "DEL under network %s, primary %s", c.key.Network, probe)
		return // what that network's list says is not this attachment's, and it is no try of its primary
	}
	if another {
		rec.Del.Count++
	}
	rec.Note(now, "DEL number %d, primary %s", rec.Del.Count, probe)
	if !c.flawed || rec.Settings.Grace == 0 {
		rec.Settings = c.cfg.Settings()
	}
	if rec.Replay == nil {
		rec.Replay = &attachment.Replay{}
	}
	if c.cniPath != "" {
		rec.Replay.CNIPath = c.cniPath
	}
	if entry != nil {
		rec.Replay.CacheFile, rec.Replay.CacheEntry = file, entry
	}
}

// isAnotherTry tells a DEL that came after the last one from one that was sent at the same time.
func (c *call) isAnotherTry(d *attachment.Del) bool {
	return c.env.Node.Now.BootID != d.Last.BootID || c.env.Node.Now.BootTime > d.Last.BootTime
}

func (c *call) deferTo(tx *journal.Tx, rec *attachment.Record, why string) error {
	if err := journal.Move(rec, attachment.Deferred); err != nil {
		return err
	}
	rec.Due = c.env.DueIn(rec)
	c.env.Log.WithFields(c.fields("defer")).WithField("cause", why).Debug("left to the primary, a sweep looks again")
	return tx.Put(rec)
}

// job says where a teardown leads: owed while the primary is away, and then its
// addresses are released by the ipam key; else the primary is called next and gets the grace to finish.
func (c *call) job(d teardown.Decision, probe teardown.Probe) reconcile.Job {
	j := reconcile.Job{Why: d.Why, Spare: true, Settle: reconcile.Always(attachment.Deferred)}
	switch {
	case d.IfLeft: // the primary answers
	case probe == teardown.Away:
		j.Release, j.Settle = true, reconcile.Always(attachment.Owed)
	case c.cfg.Teardown == teardown.Always && len(c.cfg.Probe) > 0: // asked after
		j.Settle = reconcile.Always(attachment.Owed)
	}
	return j
}

// askAfter is the second half of "always": torn down first, then left to the
// primary if it is there.
func (c *call) askAfter() error {
	probe := c.ask()
	s, err := c.session()
	if err != nil {
		return err
	}
	defer s.Unlock()
	return s.Update(func(tx *journal.Tx) error {
		rec, err := c.find(tx)
		// Tearing: not finished. A sweep will finish it, and has to know whether the primary was there.
		if err != nil || rec == nil || rec.Del == nil || rec.State != attachment.Owed && rec.State != attachment.Tearing {
			return err
		}
		rec.Del.Refused = probe == teardown.Away
		rec.Note(c.env.Now(), "primary %s", probe)
		if probe == teardown.Away {
			err := c.env.Release(rec)
			return errors.Join(err, tx.Put(rec))
		}
		if rec.State == attachment.Tearing {
			return tx.Put(rec)
		}
		return c.deferTo(tx, rec, "torn down, the primary is called next")
	})
}
