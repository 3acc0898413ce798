package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/backstop-cni/backstop/internal/adopt"
	"github.com/backstop-cni/backstop/internal/install"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/spf13/cobra"
)

func (a *app) adopt() *cobra.Command {
	var network string
	c := &cobra.Command{
		Use:   "adopt",
		Short: "record the pods that were there before backstop was",
		Long: `Record the attachments of pods from before the install, from the runtime's result cache (/var/lib/cni, Multus'
/var/lib/cni/multus and those that the conflists name) and the kernel, with the settings that their network's conflist has now.
One is recorded only if its netns, its interface and its addresses are what its cache entry says. What cannot be adopted is
listed with the reason, network namespaces below /run/netns that nothing explains among it. Doing it again changes nothing.
Verdicts:
  adopt         can be recorded
  adopted       is recorded now
  recorded      was recorded before
  other         its network's list has no entry of backstop
  left          could not be adopted, and why

Exit code 3 says that some could not be adopted.

` + exitHelpLines,
		Args: exact(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runAdopt(cmd.Context(), network) },
	}
	c.Flags().BoolVarP(&a.yes, "yes", "y", false, "record them without asking")
	c.Flags().BoolVar(&a.dryRun, "dry-run", false, "print what would be recorded and stop")
	c.Flags().StringVar(&network, "network", "", "only pods of this network (default: all; then namespaces that nothing explains are listed, too)")
	return c
}

func (a *app) runAdopt(ctx context.Context, network string) error {
	env, j, done, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, caches, err := a.configured()
	if err != nil {
		return err
	}
	for _, d := range install.DefaultCaches {
		if !slices.Contains(caches, d) {
			caches = append(caches, d)
		}
	}
	p := &adopt.Adopter{Env: env, Host: env.Kernel.(*kernel.Handle), Journal: j, ConfDir: a.confDir, Caches: caches,
		NetnsDir: "/run/netns", Network: network, LockWait: a.lockWait}
	return a.adoptBy(ctx, env, p)
}

func (a *app) adoptBy(ctx context.Context, env *reconcile.Env, p *adopt.Adopter) error {
	items, err := p.Plan(ctx)
	if err != nil {
		return err
	}
	found := func(v adopt.Verdict) bool { return tally(items, v) > 0 }
	left := func() error {
		if found(adopt.Left) {
			return errLeft
		}
		return nil
	}
	if a.dryRun || !a.yes {
		if err := a.printAdopted(items); err != nil || a.dryRun || !found(adopt.Adopt) {
			return errors.Join(err, left())
		}
		if err := a.confirm("Record them?"); err != nil {
			return err
		}
		if env.Node, err = kernel.ReadNode(); err != nil { // an answer takes its time
			return fmt.Errorf("read where backstopctl runs: %w", err)
		}
		if items, err = p.Plan(ctx); err != nil {
			return err
		}
	}
	if err := p.Store(ctx, items); err != nil {
		return errors.Join(err, a.printAdopted(items))
	}
	return errors.Join(a.printAdopted(items), left())
}

func tally(items []adopt.Item, v adopt.Verdict) (n int) {
	for _, it := range items {
		if it.Verdict == v {
			n++
		}
	}
	return n
}

func (a *app) printAdopted(items []adopt.Item) error {
	if items == nil {
		items = []adopt.Item{}
	}
	return a.print(items, func(w io.Writer) {
		if len(items) == 0 {
			fmt.Fprintln(w, "nothing to adopt: the runtime's caches have no entry, and no network namespace is unexplained")
			return
		}
		var rows [][]string
		for _, it := range items {
			why := it.Why
			if it.Verdict == adopt.Adopt || it.Verdict == adopt.Adopted {
				why = fmt.Sprintf("%d resources", len(it.Resources))
			}
			rows = append(rows, []string{string(it.Verdict), it.Name(), why})
		}
		table(w, []string{"VERDICT", "WHAT", "WHY"}, rows)
		verb, n := "adopted", tally(items, adopt.Adopted)
		if m := tally(items, adopt.Adopt); m > 0 {
			verb, n = "can be adopted", m
		}
		fmt.Fprintf(w, "%d %s, %d recorded before, %d could not be adopted, %d of other networks\n", n, verb,
			tally(items, adopt.Recorded), tally(items, adopt.Left), tally(items, adopt.Other))
	})
}
