package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/replay"
	"github.com/spf13/cobra"
)

func (a *app) replay() *cobra.Command {
	var auto bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "replay [NETWORK/CONTAINERID/IFNAME ...]",
		Short: "run the rest of the list's DEL again for owed attachments",
		Long: `Ask the primary to finish what it owes: for each owed attachment the rest of its
list runs DEL as the runtime would, so that the address is released. Only where the primary answers, and not
while a live attachment holds the address.

` + exitHelpLines,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runReplay(cmd.Context(), args, auto, timeout)
		},
	}
	c.Flags().BoolVar(&auto, "automatic", false, "only records whose grace since the last DEL is over (for timers)")
	c.Flags().DurationVar(&timeout, "timeout", time.Minute, "for the whole list of one attachment")
	return a.removes(c)
}

func (a *app) runReplay(ctx context.Context, args []string, auto bool, timeout time.Duration) error {
	env, j, done, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	want := everything
	if len(args) > 0 {
		all, err := a.records(ctx, j, everything)
		if err != nil {
			return err
		}
		some, err := pick(args, all)
		if err != nil {
			return err
		}
		want = func(r *attachment.Record) bool {
			for _, x := range some {
				if x.Key == r.Key {
					return true
				}
			}
			return false
		}
	}
	p := &replay.Replayer{Env: env, Journal: j, ConfDir: a.confDir, Automatic: auto, Timeout: timeout, LockWait: a.lockWait}
	results, err := p.Plan(ctx, want)
	if err != nil {
		return err
	}
	if a.dryRun || !a.yes {
		if err := a.printReplay(results); err != nil || a.dryRun || len(results) == 0 {
			return err
		}
		if !slices.ContainsFunc(results, func(r replay.Result) bool { return r.Runs() }) {
			return errLeft // nothing to ask about
		}
	}
	if err := a.confirm("Replay?"); err != nil {
		return err
	}
	results, err = p.Run(ctx, results)
	if perr := a.printReplay(results); err == nil {
		err = perr
	}
	for _, r := range results {
		if !r.Done && err == nil {
			err = errLeft
		}
	}
	return err
}

// replayRow is one record in -o json and yaml.
type replayRow struct {
	replay.Result
	Error string `json:"error,omitempty"`
}

func (a *app) printReplay(results []replay.Result) error {
	rows := []replayRow{}
	for _, r := range results {
		row := replayRow{Result: r}
		if r.Err != nil {
			row.Error = a.text(r.Err)
		}
		rows = append(rows, row)
	}
	return a.print(rows, func(w io.Writer) {
		if len(rows) == 0 {
			fmt.Fprintln(w, "nothing is owed")
		}
		for _, r := range rows {
			switch {
			case r.Done:
				fmt.Fprintf(w, "%s: replayed, the primary acknowledged\n", r.Key)
			case r.Error != "":
				fmt.Fprintf(w, "%s: failed: %s\n", r.Key, r.Error)
			case r.Released:
				fmt.Fprintf(w, "%s: addresses released by the IPAM plugin, %s\n", r.Key, r.Why)
			case r.Why != "":
				fmt.Fprintf(w, "%s: %s, %s\n", r.Key, r.Verdict, r.Why)
			default:
				fmt.Fprintf(w, "%s: %s\n", r.Key, r.Verdict)
			}
		}
	})
}
