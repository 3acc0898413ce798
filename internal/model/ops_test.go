package model

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// op is one operation. What it decides follows from r and from the world it meets, so that a list of operations can
// be cut and still be played.
type op struct {
	n    int // its place in the run
	kind *kind
	slot int
	r    uint64
	rand *rand.Rand // made of r anew each time the operation is played
}

// chance is true in so many of a hundred cases.
func (o *op) chance(percent int) bool { return o.rand.IntN(100) < percent }

// kind is a kind of operation; weight says how often it comes.
type kind struct {
	name   string
	weight int
	play   func(*world, *op, *slot) error
}

var kinds = []kind{
	{"add", 22, (*world).add},
	{"begin-add", 7, (*world).beginAdd},
	{"end-add", 9, (*world).endAdd},
	{"add-again", 3, (*world).addAgain},
	{"stop", 12, (*world).stop},
	{"del", 14, (*world).del},
	{"del-twice", 3, (*world).delTwice},
	{"del-at-once", 3, (*world).delAtOnce},
	{"del-renamed", 2, (*world).delRenamed},
	{"del-during-add", 3, (*world).delDuringAdd},
	{"kill", 9, (*world).killOp},
	{"check", 3, (*world).check},
	{"status", 2, (*world).status},
	{"gc", 4, (*world).gc},
	{"daemon", 11, (*world).daemon},
	{"sweep", 5, (*world).sweep},
	{"sweep-elsewhere", 2, (*world).sweepElsewhere},
	{"replay", 5, (*world).replay},
	{"garbage", 2, (*world).garbage},
	{"foreign", 6, (*world).foreignOp},
	{"reboot", 1, (*world).reboot},
}

// runLength is how many operations make a run.
const runLength = 200

// plan makes a run's operations from its seed.
func plan(seed uint64) (ops []op) {
	r := rand.New(rand.NewPCG(seed, 1))
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for n := range runLength {
		w := r.IntN(total)
		i := 0
		for ; w >= kinds[i].weight; i++ {
			w -= kinds[i].weight
		}
		ops = append(ops, op{n: n, kind: &kinds[i], slot: r.IntN(1000), r: r.Uint64()})
	}
	return ops
}

// begin makes the pods and settings of a run.
func (w *world) begin(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	graces := []time.Duration{0, 20 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond}
	for _, n := range w.nets {
		n.grace = graces[r.IntN(len(graces))]
	}
	for _, names := range []string{"aws", "aws", "ptp", "ptp bridge", "bridge", "calico", "calico", "macvlan", "aws6", "branch", "aws macvlan", "branch calico"} {
		s := &slot{name: fmt.Sprintf("p%c", 'a'+len(w.slots))}
		for _, n := range w.nets {
			if contains(names, n.name) {
				s.nets = append(s.nets, n)
			}
		}
		w.slots = append(w.slots, s)
	}
}

// play plays one operation and judges the node after it.
func (w *world) play(o op) error {
	o.rand = rand.New(rand.NewPCG(o.r, 3))
	s := w.slots[o.slot%len(w.slots)]
	w.note("%d %s %s", o.n, o.kind.name, s.name)
	if err := o.kind.play(w, &o, s); err != nil {
		return err
	}
	return w.judge()
}
