package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/install"
	"github.com/backstop-cni/backstop/journal"
	"github.com/spf13/cobra"
)

// lookEvery is how often --wait looks at the runtime's cache.
const lookEvery = time.Second

func (a *app) runUninstall(ctx context.Context, o install.Options, wait bool) error {
	caches := a.runtimeCaches(ctx)
	plan, err := install.Uninstall(o, caches, true)
	if err != nil {
		return err
	}
	if a.dryRun || !a.yes {
		if err := a.printUndone(plan, "would do: "); err != nil || a.dryRun {
			return err
		}
		if len(plan.Lists)+len(plan.Restored) == 0 && plan.Binary == "" {
			return held(plan, nil)
		}
	}
	if err := a.confirm("Uninstall?"); err != nil {
		return err
	}
	done, err := install.Uninstall(o, caches, false)
	if err == nil {
		err = a.printUndone(done, "")
	}
	for err == nil && wait && len(done.Holds) > 0 {
		select {
		case <-ctx.Done():
			return held(done, nil)
		case <-time.After(lookEvery):
		}
		if done, err = install.Uninstall(o, caches, false); err == nil && len(done.Holds) == 0 {
			err = a.printUndone(done, "")
		}
	}
	return held(done, err)
}

// runtimeCaches are the usual ones and those that records name. A journal that cannot be read names none.
func (a *app) runtimeCaches(ctx context.Context) []string {
	dirs := append([]string{}, install.DefaultCaches...)
	if j, err := a.openJournal(); err == nil {
		_ = a.view(ctx, j, func(tx *journal.Tx) error {
			return tx.Each(func(r *attachment.Record) error {
				dirs = append(dirs, r.Settings.RuntimeCacheDir)
				return nil
			})
		})
	}
	return dirs
}

func (a *app) uninstall() *cobra.Command {
	o := install.Options{}
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "take the entry out of the conflists, and then the plugin away",
		Long: `Take backstop's entry out of every conflist of --conf-dir, or out of --network's alone: the file is what it was
before, to the byte. The plugin itself goes when nothing names it any more: as long as the runtime has a cached result
with it, the DEL of that pod calls it, and fails without it. Until then it stays, the exit code is 3, and the command is to be run again; --wait
does so by itself.

` + exitHelpLines,
		Args: exact(cobra.NoArgs),
	}
	var wait bool
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		o.ConfDir = a.confDir
		return a.runUninstall(cmd.Context(), o, wait)
	}
	a.removes(c)
	c.Flags().StringVar(&o.BinDir, "bin-dir", defaultBinDir, "directory of the CNI plugins")
	c.Flags().StringVar(&o.Network, "network", "", "only the list of this network")
	c.Flags().BoolVar(&wait, "wait", false, "stay until the last cached result that names the plugin is gone")
	return c
}

func (a *app) printUndone(u *install.Undone, would string) error {
	return a.print(u, func(w io.Writer) {
		for _, l := range u.Lists {
			fmt.Fprintf(w, "%s%s: entry taken out\n", would, l)
		}
		for _, l := range u.Restored {
			fmt.Fprintf(w, "%s%s: the single configuration is back\n", would, l)
		}
		if u.Binary != "" {
			fmt.Fprintf(w, "%s%s: removed\n", would, u.Binary)
		}
		if len(u.Holds) > 0 {
			fmt.Fprintf(w, "the plugin stays: %s\n", strings.Join(u.Holds, "; "))
		}
		if len(u.Lists)+len(u.Restored)+len(u.Holds) == 0 && u.Binary == "" {
			fmt.Fprintln(w, "nothing to do")
		}
	})
}

var errHeld = fmt.Errorf("%w: run it again when these pods are gone", errLeft)

func held(u *install.Undone, err error) error {
	if err == nil && len(u.Holds) > 0 {
		return errHeld
	}
	return err
}
