package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
	"github.com/spf13/cobra"
)

func (a *app) teardown() *cobra.Command {
	var network string
	var all bool
	c := &cobra.Command{
		Use:   "teardown [NETWORK/CONTAINERID/IFNAME ...]",
		Short: "remove what attachments put into the node, now",
		Long: `Remove what the named attachments put into the node, whether or not they are
live: the plan says so for each live one. What other live attachments use is kept. Afterwards the records are owed:
replay asks the primary to release what it holds. No runtime and no daemon is needed.

` + exitHelpLines,
		RunE: func(cmd *cobra.Command, args []string) error {
			n := 0
			for _, given := range []bool{len(args) > 0, all, network != ""} {
				if given {
					n++
				}
			}
			if n != 1 {
				return fmt.Errorf("%w: name attachments, or give --network or --all: exactly one of them", errUsage)
			}
			return a.tearDown(cmd.Context(), args, func(r *attachment.Record) bool {
				return r.State != attachment.Owed && (network == "" || r.Network == network)
			})
		},
	}
	c.Flags().StringVar(&network, "network", "", "every attachment of this network")
	c.Flags().BoolVar(&all, "all", false, "every attachment that is recorded")
	return a.removes(c)
}

func (a *app) tearDown(ctx context.Context, args []string, want func(*attachment.Record) bool) error {
	env, j, done, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	if len(args) > 0 {
		want = everything
	}
	records, err := a.records(ctx, j, want)
	if err == nil && len(args) > 0 {
		records, err = pick(args, records)
	}
	if err != nil {
		return err
	}
	if len(records) == 0 || a.dryRun || !a.yes {
		if err := a.showPlans(ctx, env, j, records); err != nil {
			return err
		}
		if len(records) == 0 || a.dryRun {
			return nil
		}
	}
	if err := a.confirm(fmt.Sprintf("Tear down %d attachments?", len(records))); err != nil {
		return err
	}
	return a.carryOut(ctx, env, j, records)
}

// showPlans prints what a teardown would do.
func (a *app) showPlans(ctx context.Context, env *reconcile.Env, j *journal.Journal, records []*attachment.Record) error {
	plans := []planRow{}
	var texts []string
	nft, err := a.chainsOf(env, records)
	if err != nil {
		return err
	}
	defer nft.close()
	rules, err := nft.plan(ctx, j)
	if err != nil {
		fmt.Fprintf(a.stderr, "backstopctl: netfilter is not in this plan: %v\n", err)
	}
	of := byAttachment(rules)
	chosen := map[attachment.Key]bool{}
	for _, r := range records {
		chosen[r.Key] = true
	}
	for some := range slices.Chunk(records, compared) {
		together := *env
		together.Kernel = teardown.Together(env.Kernel, some...)
		err = a.view(ctx, j, func(tx *journal.Tx) error {
			for _, r := range some {
				others, err := env.Sharing(tx, r)
				if err != nil {
					return err
				}
				others = slices.DeleteFunc(others, func(o teardown.Other) bool { return chosen[o.Record.Key] })
				p := together.Plan(r, others)
				reconcile.PlanRelease(r, &p)
				p.Steps = append(p.Steps, stepsOf(of[r.Key])...)
				if env.Life(r.Claim()) == attachment.Live {
					p.Notes = append(p.Notes, "this attachment is live: its pod loses its network")
				}
				plans = append(plans, planned(p))
				texts = append(texts, p.String())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return a.print(plans, func(w io.Writer) {
		for _, t := range texts {
			fmt.Fprint(w, t)
		}
		if len(texts) == 0 {
			fmt.Fprintln(w, "nothing to do")
		}
	})
}

func (a *app) carryOut(ctx context.Context, env *reconcile.Env, j *journal.Journal, records []*attachment.Record) error {
	var done []planRow
	left := 0
	for some := range slices.Chunk(records, reconcile.Chunk) {
		torn, err := a.chunk(ctx, env, j, some)
		if err != nil {
			return err
		}
		for _, t := range torn {
			p := planned(t.Outcome.Plan)
			p.State = string(t.Record.State)
			if t.Outcome.Err != nil {
				p.Error = a.text(t.Outcome.Err)
				left++
			}
			done = append(done, p)
		}
	}
	err := a.tearDownChains(ctx, env, j, records, done)
	if perr := a.print(done, func(w io.Writer) {
		for _, p := range done {
			fmt.Fprintf(w, "%s: %d removed, now %s\n", p.Key, count(p.Steps, teardown.Delete), p.State)
			if p.Error != "" {
				fmt.Fprintf(w, "  not finished: %s\n", p.Error)
			}
		}
	}); err == nil {
		err = perr
	}
	if err == nil && left > 0 {
		err = errLeft
	}
	return err
}

func (a *app) chunk(ctx context.Context, env *reconcile.Env, j *journal.Journal, records []*attachment.Record) ([]reconcile.Torn, error) {
	s, err := j.LockWithin(ctx, a.lockWait)
	if err != nil {
		return nil, err
	}
	defer s.Unlock()
	var keys []attachment.Key
	for _, r := range records {
		keys = append(keys, r.Key)
	}
	return env.TearDown(s, reconcile.Job{Why: "asked for by an operator", Release: true, Settle: reconcile.Always(attachment.Owed)}, keys...)
}

func count(steps []stepRow, v teardown.Verdict) int {
	n := 0
	for _, s := range steps {
		if s.Verdict == v {
			n++
		}
	}
	return n
}
