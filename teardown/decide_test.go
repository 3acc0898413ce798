package teardown

import (
	"slices"
	"testing"
)

// row is a row of the table "What DEL decides" in the design. An empty list stands
// for any value.
type row struct {
	record, result []bool
	modes          []Mode
	probes         []Probe
	counts         []int
	want           Decision
}

func (r row) fits(s Situation) bool {
	return among(r.record, s.HaveRecord) && among(r.result, s.HaveResult) && among(r.modes, s.Mode) &&
		among(r.probes, s.Probe) && among(r.counts, s.DelCount)
}

func among[T comparable](list []T, x T) bool { return len(list) == 0 || slices.Contains(list, x) }

func decisions() map[string]row {
	yes, no := []bool{true}, []bool{false}
	early, late := []int{1, 2}, []int{3, 100}
	byProbe, always, never := []Mode{Unreachable}, []Mode{Always}, []Mode{Never}
	up, down, none := []Probe{Reachable}, []Probe{Away}, []Probe{NotConfigured}
	return map[string]row{
		"recorded, reachable": {yes, nil, byProbe, up, early,
			Decision{Action: Defer, Why: "the primary is reachable"}},
		"recorded, reachable, third DEL": {yes, nil, byProbe, up, late,
			Decision{Action: TearDown, IfLeft: true, Why: "the primary answers but does not finish"}},
		"recorded, unreachable": {yes, nil, byProbe, down, nil,
			Decision{Action: TearDown, Why: "the primary is unreachable"}},
		"recorded, no probe": {yes, nil, byProbe, none, nil,
			Decision{Action: Defer, Why: "no probe is configured: the primary works by itself"}},
		"recorded, always": {yes, nil, always, nil, nil,
			Decision{Action: TearDown, Why: `teardown is "always"`}},
		"recorded, never": {yes, nil, never, nil, nil,
			Decision{Action: Defer, Why: `teardown is "never"`}},
		"prevResult, unreachable": {no, yes, byProbe, down, nil,
			Decision{Action: TearDown, Record: true, Why: "the primary is unreachable"}},
		"prevResult, reachable or no probe": {no, yes, byProbe, []Probe{Reachable, NotConfigured}, nil,
			Decision{Action: Nothing, Why: "nothing is recorded and the primary is there to do it"}},
		"prevResult, always": {no, yes, always, nil, nil,
			Decision{Action: TearDown, Record: true, Why: `teardown is "always"`}},
		"prevResult, never": {no, yes, never, nil, nil,
			Decision{Action: Nothing, Why: "nothing is recorded of this attachment"}},
		"neither": {no, no, nil, nil, nil,
			Decision{Action: Nothing, Why: "nothing is recorded of this attachment"}},
	}
}

// A DEL that came under another network's name never removes what is not dead.
func TestDecideDoubtful(t *testing.T) {
	for _, s := range situations() {
		if s.Doubtful = true; !s.HaveRecord {
			continue // there is nothing to doubt
		}
		if d := Decide(s); d.Action != Defer || d.Record || d.IfLeft {
			t.Errorf("%+v: %+v", s, d)
		}
	}
}

// Every situation there is fits exactly one row, and is decided as the row says.
func TestDecide(t *testing.T) {
	rows := decisions()
	for _, s := range situations() {
		var fitting []string
		for name, r := range rows {
			if !r.fits(s) {
				continue
			}
			fitting = append(fitting, name)
			if got := Decide(s); got != r.want {
				t.Errorf("%s: %+v\ngot  %+v\nwant %+v", name, s, got, r.want)
			}
		}
		if len(fitting) != 1 {
			t.Errorf("%+v fits %q", s, fitting)
		}
	}
}

func situations() (all []Situation) {
	for _, record := range []bool{false, true} {
		for _, result := range []bool{false, true} {
			for _, mode := range []Mode{Unreachable, Always, Never} {
				for _, probe := range []Probe{NotConfigured, Reachable, Away} {
					for _, n := range []int{1, 2, 3, 100} {
						all = append(all, Situation{Mode: mode, Probe: probe, HaveRecord: record, HaveResult: result, DelCount: n, EscalateAfter: 3})
					}
				}
			}
		}
	}
	return all
}

func TestDecideEscalates(t *testing.T) {
	for _, c := range []struct {
		after, count int
		want         Action
	}{
		{0, 1, Defer}, {0, 1000, Defer}, // switched off
		{1, 1, TearDown},
		{5, 4, Defer}, {5, 5, TearDown},
	} {
		s := Situation{Mode: Unreachable, Probe: Reachable, HaveRecord: true, DelCount: c.count, EscalateAfter: c.after}
		if got := Decide(s); got.Action != c.want || got.IfLeft != (c.want == TearDown) {
			t.Errorf("DEL number %d of %d: %+v, want %s", c.count, c.after, got, c.want)
		}
	}
}

// Several DELs at once are no failures of the primary. While it is away or is not asked they change nothing.
func TestDecideWhileAnotherDELRuns(t *testing.T) {
	for name, s := range map[string]struct {
		in   Situation
		want Action
	}{
		"reachable":   {Situation{Mode: Unreachable, Probe: Reachable}, Defer},
		"unreachable": {Situation{Mode: Unreachable, Probe: Away}, TearDown},
		"always":      {Situation{Mode: Always, Probe: NotConfigured}, TearDown},
	} {
		s.in.HaveRecord, s.in.DelCount, s.in.EscalateAfter, s.in.Running = true, 3, 3, true
		if got := Decide(s.in); got.Action != s.want {
			t.Errorf("%s: got %q (%s), want %q", name, got.Action, got.Why, s.want)
		}
	}
}
