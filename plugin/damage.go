package plugin

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
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
		if one := c.ofEntry(e); one != nil {
			r, err := one.capture(true)
			if err != nil {
				r.LastError = err.Error()
			}
			r.Note(c.env.Now(), "recorded anew from the runtime's result cache, since the journal was damaged")
			out = append(out, r)
		}
	}
	if n := len(files); n > 0 {
		c.env.Log.WithFields(c.fields("quarantine")).Warnf("%d more entries of the runtime's cache were not read for want of time", n)
	}
	return out
}

// ofEntry is the ADD that a cache entry tells of, nil when it was not one of this journal.
func (c *call) ofEntry(e reconcile.CacheEntry) *call {
	var list struct {
		CNIVersion string                       `json:"cniVersion"`
		Plugins    []map[string]json.RawMessage `json:"plugins"`
	}
	if json.Unmarshal(e.Config, &list) != nil {
		return nil
	}
	for _, p := range list.Plugins {
		if string(p["type"]) != `"backstop"` {
			continue
		}
		p["name"], _ = json.Marshal(e.NetworkName)
		p["cniVersion"], _ = json.Marshal(list.CNIVersion)
		p["prevResult"] = e.Result
		b, err := json.Marshal(p)
		if err != nil {
			return nil
		}
		cfg, _, err := ParseConfig(b)
		key := attachment.Key{Network: e.NetworkName, ContainerID: e.ContainerID, IfName: e.IfName}
		if err != nil || cfg.Journal != c.cfg.Journal || key.Valid() != nil {
			return nil
		}
		var args []string
		for _, kv := range e.CNIArgs {
			args = append(args, kv[0]+"="+kv[1])
		}
		return &call{cfg: cfg, key: key, netns: e.NetNS, cniArgs: strings.Join(args, ";"), cniPath: c.cniPath,
			env: c.env, host: c.host, journal: c.journal, result: attachment.ParseResult(cfg.PrevResult)}
	}
	return nil
}
