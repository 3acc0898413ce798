package cli

import (
	"context"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/garbage"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// onlyChains is what a sweep does with an attachment of which nothing else is left than what is in netfilter.
const onlyChains teardown.SweepAction = "netfilter"

// planChains adds to the plans of a sweep what it would remove from netfilter, given that it carries them out.
func (a *app) planChains(ctx context.Context, env *reconcile.Env, j *journal.Journal, plans []reconcile.Swept) ([]reconcile.Swept, error) {
	examined := map[attachment.Key]bool{}
	for _, s := range plans {
		examined[s.Key] = s.Action == teardown.Examine && s.Err == nil
	}
	nft, err := a.chains(env, garbage.Ends{Patient: true, Torn: func(k attachment.Key) bool { return examined[k] }})
	if err != nil {
		return plans, err
	}
	defer nft.close()
	items, err := nft.plan(ctx, j)
	if err != nil {
		return plans, err
	}
	return a.withChains(ctx, j, plans, items)
}

// sweepChains removes from netfilter what attachments left that are dead after a sweep.
func (a *app) sweepChains(ctx context.Context, env *reconcile.Env, j *journal.Journal, swept []reconcile.Swept) ([]reconcile.Swept, error) {
	nft, err := a.chains(env, garbage.Ends{Patient: true})
	if err != nil {
		return swept, err
	}
	defer nft.close()
	marked := map[attachment.Key]bool{}
	for _, s := range swept {
		marked[s.Key] = s.Action == teardown.MarkDead
	}
	nft.want = func(k attachment.Key) bool { return !marked[k] } // a grace begins with this sweep, however short it is
	gone, err := nft.remove(ctx, j)
	swept, werr := a.withChains(ctx, j, swept, gone)
	if err == nil {
		err = werr
	}
	return swept, err
}

// withChains puts the items that go behind the steps of their attachments, which are closed if the sweep did not see them.
func (a *app) withChains(ctx context.Context, j *journal.Journal, swept []reconcile.Swept, items []garbage.Item) ([]reconcile.Swept, error) {
	at := map[attachment.Key]int{}
	for i, s := range swept {
		at[s.Key] = i
	}
	err := a.view(ctx, j, func(tx *journal.Tx) error {
		for _, it := range items {
			if it.Life != attachment.Dead {
				continue
			}
			i, there := at[it.Key]
			if !there {
				i = len(swept)
				at[it.Key] = i
				state := attachment.Closed
				if r, err := tx.Get(it.Key); err == nil && r != nil {
					state = r.State
				}
				swept = append(swept, reconcile.Swept{Key: it.Key, Action: onlyChains, State: state, Plan: teardown.Plan{Key: it.Key}})
			}
			swept[i].Plan.Steps = append(swept[i].Plan.Steps, step(it))
		}
		return nil
	})
	return swept, err
}
