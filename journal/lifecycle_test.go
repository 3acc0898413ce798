package journal

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

func TestMove(t *testing.T) {
	const a, d, x, o, c = attachment.Attached, attachment.Deferred, attachment.Tearing, attachment.Owed, attachment.Closed
	// Row: from. Written out, so that nobody widens the table of the code unseen.
	legal := map[attachment.State]map[attachment.State]bool{
		a: {a: true, d: true, x: true, o: true, c: true},
		d: {a: false, d: true, x: true, o: true, c: true},
		x: {a: false, d: true, x: true, o: true, c: true},
		o: {a: false, d: true, x: true, o: true, c: true},
		c: {a: false, d: false, x: false, o: false, c: true},
	}
	for from, row := range legal {
		for to, ok := range row {
			r := &attachment.Record{State: from}
			err := Move(r, to)
			switch {
			case ok && (err != nil || r.State != to):
				t.Errorf("%s to %s: now %s, %v", from, to, r.State, err)
			case !ok && (err == nil || r.State != from):
				t.Errorf("%s to %s: now %s, %v; want a refusal", from, to, r.State, err)
			}
		}
	}
}

func TestMoveKnowsNoOtherStates(t *testing.T) {
	for _, c := range [][2]attachment.State{{attachment.Attached, "done"}, {"done", attachment.Closed}, {"done", "done"}, {"", attachment.Attached}} {
		r := &attachment.Record{State: c[0]}
		if err := Move(r, c[1]); err == nil || r.State != c[0] {
			t.Errorf("%q to %q: now %q, %v", c[0], c[1], r.State, err)
		}
	}
}

// Only a state from which there is no way on may be the end.
func TestEveryOpenStateLeadsToClosed(t *testing.T) {
	for from, to := range transitions {
		if from != attachment.Closed && !slices.Contains(to, attachment.Closed) {
			t.Errorf("%s never closes", from)
		}
	}
}

var edge = regexp.MustCompile(`(?m)^    (\w+) --> (\w+):`)

func TestDrawingIsTheCode(t *testing.T) {
	page, err := os.ReadFile("../docs/lifecycle.md")
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[attachment.State][]attachment.State{}
	for _, m := range edge.FindAllStringSubmatch(string(page), -1) {
		from, to := attachment.State(m[1]), attachment.State(m[2])
		drawn[from] = append(drawn[from], to)
	}
	coded := map[attachment.State][]attachment.State{}
	for from, to := range transitions {
		if len(to) > 0 {
			coded[from] = slices.Sorted(slices.Values(to))
		}
	}
	for _, to := range drawn {
		slices.Sort(to)
	}
	if !reflect.DeepEqual(drawn, coded) {
		t.Errorf("docs/lifecycle.md has %v\nthe code has %v", drawn, coded)
	}
}
