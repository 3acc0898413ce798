package cli

import (
	"context"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/garbage"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// chainsOf looks at what plugins made for records that a person wants torn down.
func (a *app) chainsOf(env *reconcile.Env, records []*attachment.Record) (*chains, error) {
	named := map[attachment.Key]bool{}
	for _, r := range records {
		named[r.Key] = true
	}
	of := func(k attachment.Key) bool { return named[k] }
	c, err := a.chains(env, garbage.Ends{Torn: of, Ordered: true})
	if err == nil {
		c.want = of
	}
	return c, err
}

// stepsOf gives the lines of a plan for one attachment's.
func stepsOf(items []garbage.Item) (out []teardown.Step) {
	for _, it := range items {
		out = append(out, step(it))
	}
	return out
}

func byAttachment(items []garbage.Item) map[attachment.Key][]garbage.Item {
	of := map[attachment.Key][]garbage.Item{}
	for _, it := range items {
		of[it.Key] = append(of[it.Key], it)
	}
	return of
}

// tearDownChains removes from netfilter what was made for records that are torn down, and adds it to their rows.
func (a *app) tearDownChains(ctx context.Context, env *reconcile.Env, j *journal.Journal, records []*attachment.Record, done []planRow) error {
	nft, err := a.chainsOf(env, records)
	if err != nil {
		return err
	}
	defer nft.close()
	gone, err := nft.remove(ctx, j)
	of := byAttachment(gone)
	for i := range done {
		done[i].add(stepsOf(of[done[i].Key])...)
	}
	return err
}
