package teardown

import (
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

func TestDecideSweep(t *testing.T) {
	const grace, before, after = 2 * time.Minute, 2*time.Minute - 1, 2 * time.Minute
	const a, d, x, o, c = attachment.Attached, attachment.Deferred, attachment.Tearing, attachment.Owed, attachment.Closed
	const never = time.Duration(-1) // not seen dead
	for name, row := range map[string]struct {
		in   SweepInput
		want SweepAction
	}{
		"live":                                  {SweepInput{State: a, Life: attachment.Live, DeadFor: never}, Wait},
		"live again":                            {SweepInput{State: a, Life: attachment.Live, DeadFor: after}, Wait},
		"unknown is not dead":                   {SweepInput{State: a, Life: attachment.Unknown, DeadFor: never}, Wait},
		"unknown is not dead, whatever it was":  {SweepInput{State: a, Life: attachment.Unknown, DeadFor: time.Hour}, Wait},
		"first seen dead":                       {SweepInput{State: a, Life: attachment.Dead, DeadFor: never}, MarkDead},
		"dead since now":                        {SweepInput{State: a, Life: attachment.Dead, DeadFor: 0}, Wait},
		"dead within the grace":                 {SweepInput{State: a, Life: attachment.Dead, DeadFor: before}, Wait},
		"dead for the grace":                    {SweepInput{State: a, Life: attachment.Dead, DeadFor: after}, Examine},
		"deferred within the grace":             {SweepInput{State: d, Life: attachment.Dead, SinceDel: before}, Wait},
		"deferred for the grace":                {SweepInput{State: d, Life: attachment.Dead, SinceDel: after}, Examine},
		"deferred, its veth still there":        {SweepInput{State: d, Life: attachment.Live, SinceDel: after}, Examine},
		"deferred, cannot be seen":              {SweepInput{State: d, Life: attachment.Unknown, SinceDel: after}, Examine},
		"a teardown that was cut short":         {SweepInput{State: x, Life: attachment.Live}, Examine},
		"plugins may be at what was spared":     {SweepInput{State: x, Life: attachment.Dead, SinceDel: after, Spared: true}, Wait},
		"another network's DEL, it lives":       {SweepInput{State: d, Life: attachment.Live, SinceDel: after, Doubtful: true}, Wait},
		"another network's DEL, cannot be seen": {SweepInput{State: d, Life: attachment.Unknown, SinceDel: after, Doubtful: true}, Wait},
		"another network's DEL, it died":        {SweepInput{State: d, Life: attachment.Dead, SinceDel: after, Doubtful: true}, Examine},
		"owed is a replay's business":           {SweepInput{State: o, Life: attachment.Dead, SinceDel: time.Hour}, Wait},
		"owed, and the runtime's DEL finished":  {SweepInput{State: o, Life: attachment.Dead, SinceDel: after, Acknowledged: true}, Examine},
		"owed, and it may be running":           {SweepInput{State: o, Life: attachment.Dead, SinceDel: before, Acknowledged: true}, Wait},
		"owed, what was claimed is free now":    {SweepInput{State: o, Life: attachment.Dead, SinceDel: after, Claimed: true}, Examine},
		"owed, claimed, within the grace":       {SweepInput{State: o, Life: attachment.Dead, SinceDel: before, Claimed: true}, Wait},
		"closed":                                {SweepInput{State: c, Life: attachment.Dead, SinceDel: time.Hour}, Wait},
		"state of a newer version":              {SweepInput{State: "frozen", Life: attachment.Dead, SinceDel: time.Hour, DeadFor: time.Hour}, Wait},
	} {
		row.in.Grace, row.in.SameNode = grace, true
		if got := DecideSweep(row.in); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}

// Nothing of an earlier boot is in this kernel, and its clock says nothing here. A DEL of this boot has its grace.
func TestDecideSweepOfAnEarlierBoot(t *testing.T) {
	want := map[attachment.State]SweepAction{
		attachment.Attached: Forget, attachment.Deferred: Forget, attachment.Tearing: Forget, attachment.Owed: Wait, attachment.Closed: Wait,
	}
	for state, action := range want {
		for _, life := range []attachment.Life{attachment.Live, attachment.Dead, attachment.Unknown} {
			in := SweepInput{State: state, Life: life, SinceDel: 1<<63 - 1, DeadFor: -1, Grace: time.Minute}
			if got := DecideSweep(in); got != action {
				t.Errorf("%s, %s: got %q, want %q", state, life, got, action)
			}
		}
	}
	in := SweepInput{State: attachment.Deferred, Life: attachment.Dead, SinceDel: time.Second, DeadFor: -1, Grace: time.Minute}
	if got := DecideSweep(in); got != Wait {
		t.Errorf("deferred by a DEL of this boot: got %q, want %q", got, Wait)
	}
}

func TestAcknowledged(t *testing.T) {
	for name, c := range map[string]struct {
		del        *attachment.Del
		cacheThere bool
		want       bool
	}{
		"DEL, cache gone":                    {&attachment.Del{Count: 1}, false, true},
		"DEL, cache there":                   {&attachment.Del{Count: 1}, true, false},
		"DEL refused, cache gone (CRI-O)":    {&attachment.Del{Count: 1, Refused: true}, false, false},
		"nobody asked the primary":           {nil, false, false},
		"nobody asked, and the cache stands": {nil, true, false},
	} {
		if got := Acknowledged(&attachment.Record{Del: c.del}, c.cacheThere); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
