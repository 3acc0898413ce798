package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
	"github.com/spf13/cobra"
)

func (a *app) sweep() *cobra.Command {
	c := &cobra.Command{
		Use:   "sweep",
		Short: "remove what primaries left of attachments whose grace is over",
		Long: `Look at every record: after the grace, what the primary's DEL should have
removed and did not is removed, attachments that died without any DEL likewise. So are the netfilter chains and
rules that plugins made for containers of which everything that is recorded is dead. Live attachments are left alone.

` + exitHelpLines,
		Args: exact(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runSweep(cmd.Context()) },
	}
	return a.removes(c)
}

func (a *app) runSweep(ctx context.Context) error {
	env, j, done, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	if a.dryRun || !a.yes {
		plans, err := a.planSweep(ctx, env, j)
		if err != nil {
			return err
		}
		// Netfilter that cannot be read keeps nothing else from being swept.
		plans, nerr := a.planChains(ctx, env, j, plans)
		if err := a.printSwept(plans); err != nil || a.dryRun || len(plans) == 0 {
			return errors.Join(err, nerr)
		}
	}
	if err := a.confirm("Sweep?"); err != nil {
		return err
	}
	var swept []reconcile.Swept
	err = env.SweepAll(ctx, j, a.lockWait, func(s reconcile.Swept) {
		if s.Action != teardown.Wait || s.Err != nil {
			swept = append(swept, s)
		}
	})
	swept, nerr := a.sweepChains(ctx, env, j, swept)
	err = errors.Join(err, nerr)
	if perr := a.printSwept(swept); err == nil {
		err = perr
	}
	for _, s := range swept {
		if s.Err != nil && err == nil {
			err = errLeft
		}
	}
	return err
}

func (a *app) planSweep(ctx context.Context, env *reconcile.Env, j *journal.Journal) (out []reconcile.Swept, err error) {
	var records []*attachment.Record
	err = a.view(ctx, j, func(tx *journal.Tx) error {
		a.unread(tx.Each(func(r *attachment.Record) error { records = append(records, r); return nil }))
		return nil
	})
	for some := range slices.Chunk(records, compared) {
		together := *env
		together.Kernel = teardown.Together(env.Kernel, some...)
		err = errors.Join(err, a.view(ctx, j, func(tx *journal.Tx) error {
			for _, r := range some {
				others, err := env.Sharing(tx, r)
				if err != nil {
					out = append(out, reconcile.Swept{Key: r.Key, State: r.State, Err: err})
				} else if s := together.PlanSweep(r, others); s.Action != teardown.Wait {
					out = append(out, s)
				}
			}
			return nil
		}))
	}
	return out, err
}

// sweptRow is one record in -o json and yaml.
type sweptRow struct {
	planRow
	Action teardown.SweepAction `json:"action"`
}

func (a *app) printSwept(swept []reconcile.Swept) error {
	rows := []sweptRow{}
	for _, s := range swept {
		p := planned(s.Plan)
		p.Key, p.State = s.Key, string(s.State)
		if s.Err != nil {
			p.Error = a.text(s.Err)
		}
		rows = append(rows, sweptRow{p, s.Action})
	}
	return a.print(rows, func(w io.Writer) {
		if len(rows) == 0 {
			fmt.Fprintln(w, "nothing to sweep")
		}
		for i, r := range rows {
			fmt.Fprintf(w, "%s: %s, %s\n", r.Key, r.Action, r.State)
			if r.Action == teardown.Examine || r.Action == onlyChains {
				for _, st := range swept[i].Plan.Steps {
					fmt.Fprintf(w, "  %s\n", st)
				}
			}
			if r.Error != "" {
				fmt.Fprintf(w, "  not finished: %s\n", r.Error)
			}
		}
	})
}
