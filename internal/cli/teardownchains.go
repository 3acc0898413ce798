package cli

import (
	"context"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/garbage"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// chainsOf looks at what plugins made for records that a person wants torn down.
func (a *app) chainsOf(env *reconcile.Env, records []*attachment.Record) (*chains, error) {
	of := func(k attachment.Key) bool {
		return slices.ContainsFunc(records, func(r *attachment.Record) bool { return r.Key == k })
	}
	c, err := a.chains(env, garbage.Ends{Torn: of, Ordered: true})
	if err == nil {
		c.want = of
	}
	return c, err
}

// stepsOf gives the lines of a plan for one attachment.
func stepsOf(k attachment.Key, items []garbage.Item) (out []teardown.Step) {
	for _, it := range items {
		if it.Key == k {
			out = append(out, step(it))
		}
	}
	return out
}

// tearDownChains removes from netfilter what was made for records that are torn down, and adds it to their rows.
func (a *app) tearDownChains(ctx context.Context, env *reconcile.Env, j *journal.Journal, records []*attachment.Record, done []planRow) error {
	nft, err := a.chainsOf(env, records)
	if err != nil {
		return err
	}
	defer nft.close()
	gone, err := nft.remove(ctx, j)
	for i := range done {
		done[i].add(stepsOf(done[i].Key, gone)...)
	}
	return err
}
