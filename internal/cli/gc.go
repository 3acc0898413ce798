package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/backstop-cni/backstop/internal/garbage"
	"github.com/backstop-cni/backstop/internal/ipam"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/plugin"
	"github.com/spf13/cobra"
)

func (a *app) gc() *cobra.Command {
	var runtimeCache bool
	c := &cobra.Command{
		Use:   "gc",
		Short: "release addresses and remove netfilter chains that dead pods still hold",
		Long: `Release the host-local reservations of attachments that are dead, of every network
whose backstop entry has an "ipam" key, and remove the netfilter chains and rules that plugins made for such containers alone. Dead is
what is recorded and whose netns and host link are gone or, without a record, whose netns in the runtime's cache entry is
gone. What nobody knows is listed as unknown and left alone.

With --runtime-cache the entries of dead attachments in the runtime's result cache go, too, where no record needs them.

` + exitHelpLines,
		Args: exact(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runGC(cmd.Context(), runtimeCache) },
	}
	c.Flags().BoolVar(&runtimeCache, "runtime-cache", false, "also entries of the runtime's result cache")
	return a.removes(c)
}

func (a *app) runGC(ctx context.Context, runtimeCache bool) error {
	env, j, done, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	find := func() (*garbageFound, error) { return a.garbage(ctx, env, j, runtimeCache) }
	found, err := find()
	if err != nil {
		return err
	}
	planned := found.items
	nft, err := a.chains(env, garbage.Ends{})
	if err != nil {
		return err
	}
	defer nft.close()
	nft.unrecorded = true
	// Netfilter that cannot be read keeps no address from being released.
	rules, nerr := nft.plan(ctx, j)
	nft.only = slices.DeleteFunc(append([]garbage.Item{}, rules...), func(it garbage.Item) bool { return it.Life == attachment.Live })
	planned = append(planned, nft.only...)
	if a.dryRun || !a.yes {
		if err := a.printGarbage(planned, "would remove"); err != nil || a.dryRun || !slices.ContainsFunc(planned, dead) {
			return errors.Join(err, nerr)
		}
	}
	if err := a.confirm("Remove what is dead?"); err != nil {
		return err
	}
	if !a.yes { // an answer takes its time: only what was dead then and is dead still
		if found, err = find(); err != nil {
			return err
		}
	}
	gone, err := found.remove(planned)
	chains, cerr := nft.remove(ctx, j)
	left := slices.DeleteFunc(slices.Clone(nft.only), dead)
	return errors.Join(err, nerr, cerr, a.printGarbage(slices.Concat(gone, chains, left), "removed"))
}

// garbageFound is garbage that was found, and where.
type garbageFound struct {
	finder *garbage.Finder
	stores []garbage.Store
	items  []garbage.Item
}

// remove removes the files of a plan that are dead, and gives what it looked at.
func (f *garbageFound) remove(planned []garbage.Item) (seen []garbage.Item, err error) {
	type same struct {
		file string
		life attachment.Life
	}
	shown := map[same]bool{}
	for _, p := range planned {
		if p.Netfilter == nil {
			shown[same{p.File, p.Life}] = true
		}
	}
	var errs []error
	for _, it := range f.items {
		if !shown[same{it.File, it.Life}] {
			continue
		}
		seen = append(seen, it)
		if dead(it) {
			errs = append(errs, f.finder.Remove(f.stores, it))
		}
	}
	return seen, errors.Join(errs...)
}

// garbage finds it, in every place that the records and the conflists name. Nobody waits for it: only the records are read
// under the journal's lock.
func (a *app) garbage(ctx context.Context, env *reconcile.Env, j *journal.Journal, runtimeCache bool) (*garbageFound, error) {
	var found garbageFound
	var dirs []string
	err := a.view(ctx, j, func(tx *journal.Tx) (err error) { found.stores, dirs, err = a.places(tx); return err })
	if err != nil {
		return nil, err
	}
	caches := garbage.ReadCaches(dirs)
	err = a.view(ctx, j, func(tx *journal.Tx) error {
		if found.finder, err = garbage.NewFinder(env, tx, caches); err != nil {
			fmt.Fprintf(a.stderr, "backstopctl: not everything could be read: %v\n", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if found.items, err = found.finder.Reservations(found.stores); err != nil {
		return nil, err
	}
	if runtimeCache {
		found.items = append(found.items, found.finder.CacheEntries()...)
	}
	return &found, nil
}

// places gives those that the conflists and the open records name.
func (a *app) places(tx *journal.Tx) (stores []garbage.Store, caches []string, err error) {
	stores, caches, err = a.configured()
	// A record that cannot be read names none; the finder tells of it.
	_ = tx.Each(func(r *attachment.Record) error {
		stores, caches = place(stores, caches, r.Network, r.Settings)
		return nil
	})
	return stores, caches, err
}

// configured gives the places that the conflists' backstop entries name.
func (a *app) configured() (stores []garbage.Store, caches []string, err error) {
	files, _, err := conflist.Read(a.confDir)
	for _, file := range files {
		for _, p := range file.Plugins {
			if conflist.Type(p) != "backstop" {
				continue
			}
			if cfg, _, err := plugin.ParseConfig(p); err == nil {
				stores, caches = place(stores, caches, file.Name, cfg.Settings())
			}
		}
	}
	if len(caches) == 0 {
		caches = []string{"/var/lib/cni"}
	}
	return stores, caches, err
}

func place(stores []garbage.Store, caches []string, network string, s attachment.Settings) ([]garbage.Store, []string) {
	if c, err := ipam.Parse(s.IPAM); err == nil && c.Type == ipam.HostLocal {
		if st := (garbage.Store{IPAM: c, Network: network}); !slices.Contains(stores, st) {
			stores = append(stores, st)
		}
	}
	if s.RuntimeCacheDir != "" && !slices.Contains(caches, s.RuntimeCacheDir) {
		caches = append(caches, s.RuntimeCacheDir)
	}
	return stores, caches
}

func (a *app) printGarbage(items []garbage.Item, done string) error {
	if items == nil {
		items = []garbage.Item{}
	}
	return a.print(items, func(w io.Writer) {
		if len(items) == 0 {
			fmt.Fprintln(w, "nothing of dead attachments is held")
		}
		for _, it := range items {
			what := done
			if it.Life != attachment.Dead {
				what = "left"
			}
			fmt.Fprintf(w, "%s %s of %s (%s: %s)\n", what, it.What(), it.Key, it.Life, it.Why)
		}
	})
}
