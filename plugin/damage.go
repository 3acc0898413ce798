package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
)

// adoptTime bounds how long one call reads the runtime's cache for a journal that is begun anew.
const adoptTime = 5 * time.Second

// update is the session's Update. A damaged journal is put aside first, and a new one begun from the spool and the
// runtime's result cache.
func (c *call) update(s *journal.Session, fn func(*journal.Tx) error) error {
	err := s.Update(fn)
	if !errors.Is(err, journal.ErrDamaged) {
		return err
	}
	log := c.env.Log.WithFields(c.fields("quarantine")).WithError(err)
	found := c.adopt()
	crash.At("quarantine.adopted")
	aside, qerr := s.BeginAnew(c.env.Now().Wall, func(tx *journal.Tx) error {
		if err := c.env.Enter(tx); err != nil {
			return err
		}
		for _, r := range found {
			if _, err := c.env.Place(tx, r); err != nil {
				log.WithError(err).Warn("an attachment of the runtime's cache could not be recorded: " + r.Key.String())
			}
		}
		return nil
	})
	if qerr != nil {
		return errors.Join(err, qerr)
	}
	log.WithField("file", aside).Error("the journal is damaged, it was put aside and a new one is begun; `backstopctl journal export` reads what is left of it")
	return s.Update(fn)
}

// adopt records anew what the runtime's cache says of attachments whose netns is there.
func (c *call) adopt() (out []*attachment.Record) {
	dir := filepath.Join(c.cfg.RuntimeCacheDir, "results")
	files, _ := os.ReadDir(dir)
	for end := time.Now().Add(adoptTime); len(files) > 0 && time.Now().Before(end); files = files[1:] {
		e, ok := reconcile.ParseCacheEntry(reconcile.ReadCacheEntry(filepath.Join(dir, files[0].Name())))
		if !ok || e.NetNS == "" {
			continue
		}
		if _, err := kernel.NamespaceAt(e.NetNS); err != nil {
			continue
		}
		add, cfg, _, err := OfEntry(e, e.Config)
		if err != nil || cfg.Journal != c.cfg.Journal {
			continue // not one of this journal
		}
		add.CNIPath = c.cniPath
		r, err := c.env.Record(c.host, add)
		if err != nil {
			r.LastError = err.Error()
		}
		r.Note(c.env.Now(), "recorded anew from the runtime's result cache, since the journal was damaged")
		out = append(out, r)
	}
	if n := len(files); n > 0 {
		c.env.Log.WithFields(c.fields("quarantine")).Warnf("%d more entries of the runtime's cache were not read for want of time", n)
	}
	return out
}
