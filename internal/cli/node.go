package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/plugin"
	"github.com/sirupsen/logrus"
)

// openJournal finds the journal: --journal, or the one that the conflists name,
// or the default.
func (a *app) openJournal() (*journal.Journal, error) {
	if a.journalPath != "" {
		if !filepath.IsAbs(a.journalPath) {
			return nil, fmt.Errorf("%w: --journal %q: want an absolute path", errUsage, a.journalPath)
		}
		if _, err := os.Lstat(a.journalPath); err != nil {
			return nil, fmt.Errorf("--journal: %w", err)
		}
		return journal.At(a.journalPath), nil
	}
	files, _, err := conflist.Read(a.confDir)
	if err != nil {
		return nil, err
	}
	var named []string
	for _, f := range files {
		for _, p := range f.Plugins {
			if conflist.Type(p) != "backstop" {
				continue
			}
			if cfg, _, err := plugin.ParseConfig(p); err == nil && !slices.Contains(named, cfg.Journal) {
				named = append(named, cfg.Journal)
			}
		}
	}
	switch len(named) {
	case 0:
		return journal.At(journal.DefaultPath), nil
	case 1:
		return journal.At(named[0]), nil
	}
	return nil, fmt.Errorf("%w: the conflists in %s name several journals (%s): choose one with --journal", errUsage, a.confDir, strings.Join(named, ", "))
}

// openNode reads where this command stands and opens the kernel.
func (a *app) openNode() (*reconcile.Env, func(), error) {
	log := logrus.New()
	log.SetOutput(a.stderr)
	log.SetLevel(logrus.WarnLevel)
	node, err := kernel.ReadNode()
	if err != nil {
		return nil, nil, fmt.Errorf("read where backstopctl runs: %w", err)
	}
	h, err := kernel.OpenHost()
	if err != nil {
		return nil, nil, err
	}
	return &reconcile.Env{Node: node, Kernel: h, Log: log}, h.Close, nil
}

func (a *app) view(ctx context.Context, j *journal.Journal, fn func(*journal.Tx) error) error {
	return j.ViewWithin(ctx, a.lockWait, fn)
}

// records reads the open records that want selects. Unreadable ones are named on
// stderr and do not hide the others.
func (a *app) records(ctx context.Context, j *journal.Journal, want func(*attachment.Record) bool) ([]*attachment.Record, error) {
	var out []*attachment.Record
	var bad error
	err := a.view(ctx, j, func(tx *journal.Tx) error {
		bad = tx.Each(func(r *attachment.Record) error {
			if want(r) {
				out = append(out, r)
			}
			return nil
		})
		return nil
	})
	a.unread(bad)
	return out, err
}

// unread tells which records could not be decoded: they keep nobody from the others.
func (a *app) unread(bad error) {
	if bad != nil {
		fmt.Fprintf(a.stderr, "backstopctl: some records cannot be read: %v\n", bad)
	}
}

func everything(*attachment.Record) bool { return true }

// pick reads NETWORK/CONTAINERID/IFNAME arguments and checks that each is recorded.
func pick(args []string, all []*attachment.Record) ([]*attachment.Record, error) {
	var out []*attachment.Record
	for _, arg := range args {
		k, err := attachment.ParseKey(arg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		i := slices.IndexFunc(all, func(r *attachment.Record) bool { return r.Key == k })
		if i < 0 {
			return nil, fmt.Errorf("%s is not recorded as open (see backstopctl list, and list --history)", k)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// print writes a value as -o wants it, or calls table.
func (a *app) print(v any, table func(io.Writer)) error {
	switch a.output {
	case "json":
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case "yaml":
		return printYAML(a.stdout, v)
	}
	table(a.stdout)
	return nil
}
