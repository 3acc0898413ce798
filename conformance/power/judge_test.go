package main

import (
	"strings"
	"testing"
)

func words(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		all = append(all, strings.Fields(line))
	}
	return all
}

// What is not acknowledged may be there or not; what is has to be.
func TestJudge(t *testing.T) {
	const before = "ADDED 0-0\nADDED 0-1\nDELETING 0-0\nDELETED 0-0\nADDED 1-0\nDELETING 1-0\n"
	const good = "THERE 0-1 attached\nTHERE 1-0 tearing\nTHERE 9-9 attached\nLATER 0-1 attached\nLATER 0-0 owed\nSOUND\n"
	for name, c := range map[string]struct {
		before, after        string
		lost, undone, broken int
	}{
		"as it should be":              {before, good, 0, 0, 0},
		"nothing but what has to be":   {before, "THERE 0-1 attached\nSOUND\n", 0, 0, 0},
		"an ADD is lost":               {before, "THERE 1-0 attached\nSOUND\n", 1, 0, 0},
		"an ADD is there as another":   {before, "THERE 0-1 owed\nSOUND\n", 1, 0, 0},
		"a DEL is undone":              {before, good + "LATER 0-0 attached\n", 0, 1, 0},
		"the journal cannot be read":   {before, "GUEST journal check: damaged\n", 0, 0, 1},
		"it waits in the spool, too":   {before, "THERE 0-1 attached\nTHERE 0-1 attached\nLATER 0-0 owed\nSOUND\n", 0, 0, 0},
		"the guest ended by itself":    {before + "STOPPED why\n", good, 0, 0, 0},
		"nothing was acknowledged":     {"DELETING 0-0\n", "SOUND\n", 0, 0, 0},
		"a swept record at the second": {before, "THERE 0-1 attached\nLATER 0-1 owed\nSOUND\n", 0, 0, 0},
	} {
		var r result
		r.judge(words(c.before), words(c.after))
		faults := c.lost + c.undone + c.broken + strings.Count(c.before, "STOPPED")
		if r.lost != c.lost || r.undone != c.undone || r.broken != c.broken || len(r.faults) != faults {
			t.Errorf("%s: %+v", name, r)
		}
		if want := strings.Count(c.before, "ADDED"); r.added != want {
			t.Errorf("%s: %d ADDs, want %d", name, r.added, want)
		}
	}
}
