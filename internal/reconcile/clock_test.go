package reconcile

import (
	"errors"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// A wall clock that jumps, by years in either direction as it does when ntpd finds its servers, neither ends a grace nor
// makes one last: only the time since the boot counts.
func TestTheWallClockEndsNoGrace(t *testing.T) {
	const grace, years = time.Hour, 10 * 365 * 24 * time.Hour
	for name, jump := range map[string]time.Duration{"none": 0, "ahead": years, "back": -years} {
		for _, c := range []struct {
			state  attachment.State
			passed time.Duration // since the DEL, or since it was seen dead
			want   teardown.SweepAction
		}{
			{attachment.Deferred, grace - time.Minute, teardown.Wait},
			{attachment.Deferred, grace + time.Minute, teardown.Examine},
			{attachment.Attached, grace - time.Minute, teardown.Wait},
			{attachment.Attached, grace + time.Minute, teardown.Examine},
		} {
			b := newBench(t, kernel.NewFake())
			then := b.Now()
			then.BootTime -= c.passed
			then.Wall = then.Wall.Add(jump)
			r := b.record("pod")
			r.State, r.Settings.Grace, r.Netns, r.NetnsID = c.state, grace, "/run/netns/gone", attachment.NamespaceID{Ino: 1}
			if c.state == attachment.Attached {
				r.DeadSince = &then
			} else {
				r.Del = &attachment.Del{Count: 1, Last: then}
			}
			r.Due = then
			r.Due.BootTime += grace
			err := b.j.UpdateWithin(t.Context(), patience, func(tx *journal.Tx) error {
				return errors.Join(tx.EnterBoot(b.Now()), tx.Put(r))
			})
			if err != nil {
				t.Fatal(err)
			}

			var due []attachment.Key
			err = b.j.ViewWithin(t.Context(), patience, func(tx *journal.Tx) (err error) { due, err = tx.Due(b.Now(), 1); return err })
			if err != nil || (len(due) == 1) != (c.want == teardown.Examine) {
				t.Errorf("jump %s, %s for %v: due are %v (%v)", name, c.state, c.passed, due, err)
			}
			if got := b.sweep()["pod"]; got.Err != nil || got.Action != c.want {
				t.Errorf("jump %s, %s for %v: %s (%v), want %s", name, c.state, c.passed, got.Action, got.Err, c.want)
			}
		}
	}
}
