package crashtest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode"
)

var (
	killsFlag = flag.Int("kills", 0, "how many calls are killed in all; 0: one at each point, and one at any moment of each act")
	seedFlag  = flag.Uint64("seed", 1, "chooses acts, passes and moments; when the others work is the machine's")
)

// nodes play at once, each with its share of the points.
const nodes = 2

// shareEnv tells a node which share it has, binEnv where the programs are, rowsEnv where its part of the table goes.
const binEnv, rowsEnv = "BACKSTOP_CRASHTEST_BIN", "BACKSTOP_CRASHTEST_ROWS"

// TestKills kills at every point and at any moment.
func TestKills(t *testing.T) {
	if os.Getenv(binEnv) == "" {
		dir := t.TempDir()
		t.Setenv(binEnv, dir)
		t.Setenv(rowsEnv, dir)
		if err := build(dir); err != nil {
			t.Fatal(err)
		}
		defer func() { report(t, dir) }()
	}
	t.Run("nodes", func(t *testing.T) {
		for share := range nodes {
			t.Run(fmt.Sprint(share), func(t *testing.T) {
				t.Parallel()
				testnode.Run(t, func(t *testing.T) { kill(t, share) })
			})
		}
	})
}

// kill plays a node's share.
func kill(t *testing.T, share int) {
	points, err := crashPoints()
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(os.Getenv(binEnv), *seedFlag*nodes+uint64(share))
	if err != nil {
		t.Fatal(err)
	}
	w.others = w.startLoad()
	p := plan{world: w, reached: map[string][]reach{}, took: map[string]time.Duration{}}
	if *killsFlag > 0 {
		err = p.explore(points)
	} else {
		err = p.declared(points)
	}
	if err != nil {
		t.Error(err)
	}
	var mine []string
	for i, name := range points {
		if i%nodes == share {
			mine = append(mine, name)
		}
	}
	rows := p.killAll(t, mine)
	lives, err := w.others.end()
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d pods came and went beside them", lives)
	if now, err := (testnode.View{Netns: "nb"}).Take(); err != nil || testnode.Diff(w.neighbour, now) != "" {
		t.Errorf("the neighbour's own namespace changed (%v):\n%s", err, testnode.Diff(w.neighbour, now))
	}
	if now, err := look(); err != nil || testnode.Diff(w.base, now) != "" {
		t.Errorf("at last the node is another (%v):\n%s", err, testnode.Diff(w.base, now))
	}
	b, err := json.Marshal(rows)
	if err == nil {
		err = os.WriteFile(filepath.Join(os.Getenv(rowsEnv), fmt.Sprintf("rows%d.json", share)), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reach is an act that passes a point so often.
type reach struct {
	act    act
	passes int
}

type plan struct {
	*world
	reached map[string][]reach
	took    map[string]time.Duration // how long the call of an act takes
}

// explorations is how often an act is played to see where it goes: what the others do has its part in it.
const explorations = 4

// explore plays the acts without a death until every point is reached.
func (p *plan) explore(points []string) error {
	var errs []error
	for n := 0; n == 0 || n < explorations && len(p.unreached(points)) > 0; n++ {
		for _, a := range acts {
			trace := fmt.Sprintf("/run/trace%d", p.serial)
			v := p.play(a, death{trace: trace})
			if !v.fine() {
				errs = append(errs, fmt.Errorf("%s, without a kill: %v", a.name, v))
			}
			p.took[a.name] = max(p.took[a.name], v.took)
			passed, err := passes(trace)
			if err != nil {
				errs = append(errs, err)
			}
			for name, n := range passed {
				p.reached[name] = append(p.reached[name], reach{a, n})
			}
		}
	}
	if missing := p.unreached(points); len(missing) > 0 {
		errs = append(errs, fmt.Errorf("crash points that no act reaches: %q", missing))
	}
	return errors.Join(errs...)
}

// declared takes the acts' word for the points that they reach: the kill shows it.
func (p *plan) declared(points []string) error {
	for _, a := range acts {
		p.took[a.name] = short
		for _, name := range strings.Fields(a.points) {
			if !slices.Contains(points, name) {
				return fmt.Errorf("%s names a crash point %s that is not in the source", a.name, name)
			}
			p.reached[name] = append(p.reached[name], reach{a, 1})
		}
	}
	if missing := p.unreached(points); len(missing) > 0 {
		return fmt.Errorf("crash points that no act is for: %q", missing)
	}
	return nil
}

// short is about what a call takes.
const short = 30 * time.Millisecond

func (p *plan) unreached(points []string) []string {
	return slices.DeleteFunc(slices.Clone(points), func(name string) bool { return len(p.reached[name]) > 0 })
}

// atAnyMoment is the row of the kills that no point names.
const atAnyMoment = "(any moment)"

// killAll kills as often as the flags say: nine of ten at the points, the others at any moment.
func (p *plan) killAll(t *testing.T, points []string) []row {
	each, any := 1, 2
	if *killsFlag > 0 {
		share := (*killsFlag + nodes - 1) / nodes
		each = (share*9/10 + len(points) - 1) / len(points)
		any = max(share-each*len(points), share/10)
	}
	var rows []row
	for _, name := range points {
		ways := p.reached[name]
		if len(ways) == 0 {
			continue
		}
		rows = append(rows, p.killAt(t, name, each, func(try int) (act, death) {
			way := ways[p.rand.IntN(len(ways))]
			pass := 1 + p.rand.IntN(way.passes)
			if try > each { // what comes and goes with the others is surest the first time
				pass = 1
			}
			return way.act, death{point: name, pass: pass}
		}))
	}
	return append(rows, p.killAt(t, atAnyMoment, any, func(int) (act, death) {
		a := acts[p.rand.IntN(len(acts))]
		return a, death{after: 1 + time.Duration(p.rand.Int64N(int64(p.took[a.name])))}
	}))
}

// tries is how many plays a kill may need: a point may not be passed in each of them.
const tries = 8

func (p *plan) killAt(t *testing.T, name string, times int, choose func(try int) (act, death)) row {
	r := row{Point: name}
	for try := 0; r.Kills < times && try < times*tries; try++ {
		a, d := choose(try)
		v := p.play(a, d)
		if v.died {
			r.Kills++
		}
		r.Lost, r.Foreign, r.Left = r.Lost+len(v.lost), r.Foreign+len(v.foreign), r.Left+len(v.left)
		if !v.fine() {
			r.Faults++
			t.Errorf("%s killed at %s (died %v): %v", a.name, d, v.died, v)
		}
	}
	if r.Kills < times {
		t.Errorf("%s: %d kills in %d plays, want %d", name, r.Kills, times*tries, times)
	}
	return r
}
