package cli

import (
	"context"

	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
)

// open finds the journal and opens the kernel, for commands that compare the two:
// they must stand where the records were made. Those that remove begin with what waits in the spool.
func (a *app) open(ctx context.Context) (env *reconcile.Env, j *journal.Journal, done func(), err error) {
	if env, done, err = a.openNode(); err != nil {
		return nil, nil, nil, err
	}
	if j, err = a.openJournal(); err == nil {
		err = a.view(ctx, j, env.AtHome)
	}
	if err == nil && a.removing && !a.dryRun {
		err = env.TakeIn(ctx, j, a.lockWait)
	}
	if err != nil {
		done()
		return nil, nil, nil, err
	}
	return env, j, done, nil
}
