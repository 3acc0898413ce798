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

// difference is one finding of verify.
type difference struct {
	attachment.Key
	State    attachment.State `json:"state"`
	Life     attachment.Life  `json:"life"`
	What     string           `json:"what"` // missing, leftover, unreadable, reservation
	Resource string           `json:"resource"`
	Why      string           `json:"why,omitempty"`
}

func (a *app) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [NETWORK/CONTAINERID/IFNAME ...]",
		Short: "compare the node with the records, and change nothing",
		Long: `Compare the node with the records: what live attachments have lost (missing), and
what is there of attachments that are dead or had their DEL (leftover), and host-local reservations of containers
that are not there any more (reservation; gc releases them). Exit code 3 when there is any.

` + exitHelpLines,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, n, err := a.differences(cmd, args)
			if err != nil {
				return err
			}
			err = a.print(found, func(w io.Writer) {
				if len(found) == 0 {
					fmt.Fprintf(w, "%d records, the node agrees with all of them\n", n)
					return
				}
				var rows [][]string
				for _, d := range found {
					rows = append(rows, []string{d.Key.String(), string(d.State), string(d.Life), d.What, d.Resource, d.Why})
				}
				table(w, []string{"ATTACHMENT", "STATE", "LIFE", "WHAT", "RESOURCE", "WHY"}, rows)
			})
			if err == nil && len(found) > 0 {
				err = errLeft
			}
			return err
		},
	}
}

func (a *app) differences(cmd *cobra.Command, args []string) (found []difference, n int, err error) {
	env, j, done, err := a.open(cmd.Context())
	if err != nil {
		return nil, 0, err
	}
	defer done()
	records, err := a.records(cmd.Context(), j, everything)
	if err == nil && len(args) > 0 {
		records, err = pick(args, records)
	}
	if err != nil {
		return nil, 0, err
	}
	found = []difference{}
	for some := range slices.Chunk(records, compared) {
		ds, err := a.compareSome(cmd.Context(), env, j, some)
		if err != nil {
			return nil, 0, err
		}
		found = append(found, ds...)
	}
	if len(args) > 0 {
		return found, len(records), nil
	}
	garbage, err := a.garbage(cmd.Context(), env, j, false)
	if err != nil {
		return nil, 0, err
	}
	for _, it := range garbage.items {
		found = append(found, difference{Key: it.Key, Life: it.Life, What: "reservation", Resource: it.Reservation.String(), Why: it.Why})
	}
	return found, len(records), nil
}

// compared is how many records share one look at the node's rules, and one at the journal.
const compared = 512

func (a *app) compareSome(ctx context.Context, env *reconcile.Env, j *journal.Journal, records []*attachment.Record) (out []difference, err error) {
	records = slices.DeleteFunc(slices.Clone(records), func(r *attachment.Record) bool { return !r.SameNode(env.Node) })
	others := make([][]teardown.Other, len(records))
	err = a.view(ctx, j, func(tx *journal.Tx) (err error) {
		for i, r := range records {
			if others[i], err = env.Sharing(tx, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	together := *env
	together.Kernel = teardown.Together(env.Kernel, records...)
	for i, r := range records {
		out = append(out, differences(r, env.Life(r.Claim()), together.Plan(r, others[i]))...)
	}
	return out, nil
}

// differences are what a plan to tear down says of an attachment that should be there, or should not.
func differences(r *attachment.Record, life attachment.Life, plan teardown.Plan) (out []difference) {
	expected := r.State == attachment.Attached && life != attachment.Dead
	for _, s := range plan.Steps {
		d := difference{Key: r.Key, State: r.State, Life: life, Resource: s.Resource.String(), Why: s.Why}
		switch {
		case s.Verdict == teardown.Unknown:
			d.What = "unreadable"
		case expected && !s.Resource.Superseded && (s.Verdict == teardown.Gone || s.Verdict == teardown.Foreign):
			d.What = "missing"
		case !expected && s.Verdict == teardown.Delete:
			d.What = "leftover"
		default:
			continue
		}
		out = append(out, d)
	}
	return out
}
