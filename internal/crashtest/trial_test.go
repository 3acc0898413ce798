package crashtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
)

// verdict is what became of one kill.
type verdict struct {
	died    bool
	took    time.Duration // of the call
	lost    []string      // acknowledged ADDs without a record, DELs that are undone
	foreign []string      // removed, and not the pod's
	left    []string      // in the kernel, in host-local's directory or beside the journal
	other   []error       // a call that did not work, a journal that is not sound
}

func (v *verdict) fine() bool { return len(v.lost)+len(v.foreign)+len(v.left)+len(v.other) == 0 }

func (v *verdict) String() string {
	return fmt.Sprintf("lost %q, foreign %q, left %q, %v", v.lost, v.foreign, v.left, errors.Join(v.other...))
}

// trial is one kill and what follows.
type trial struct {
	*world
	death   death
	journal string
	pods    []*pod
	verdict verdict
}

// pod is another attachment of this trial, as its primary leaves it.
func (t *trial) pod(network string) (*pod, error) {
	p := t.newPod(len(t.pods), network, t.journal)
	t.pods = append(t.pods, p)
	return p, p.dress()
}

// attached is a pod whose ADD was acknowledged.
func (t *trial) attached(network string) (*pod, error) {
	p, err := t.pod(network)
	if err == nil {
		err = t.add(p)
	}
	return p, err
}

// victim waits for the call that is to be killed.
func (t *trial) victim(c *call, err error) error {
	if err == nil {
		t.verdict.died, err = c.wait()
		t.verdict.took = c.took
	}
	return err
}

// addVictim has a pod's ADD killed; one that was quicker is acknowledged.
func (t *trial) addVictim(p *pod) error {
	err := t.victim(t.verb(t.death, "ADD", p))
	if err == nil && !t.verdict.died {
		err = t.added(p)
	}
	return err
}

func (t *trial) delVictim(p *pod) error {
	t.ending(p)
	return t.victim(t.verb(t.death, "DEL", p))
}

// judge does what comes after a kill, and looks. The others work until the next call is through; all after it would
// mostly wait for them.
func (t *trial) judge() {
	note := func(what string, err error) {
		if err != nil {
			t.verdict.other = append(t.verdict.other, fmt.Errorf("%s: %w", what, err))
		}
	}
	// It takes in what waits in the spool.
	next, err := t.attached("n")
	note("the next ADD", err)
	note("look at the journal", t.records())
	t.gate.Lock()
	defer t.gate.Unlock()
	if next == nil {
		return
	}
	note("DELs", t.dels())
	note("look at the node", t.node())
	note("look at the journal after the DELs", t.gone())
	t.leftovers()
	if t.journal != t.world.journal {
		note("remove the trial's journal", os.RemoveAll(filepath.Dir(t.journal)))
	}
}

// dels are those of the trial's pods, all at once, while the primary is away.
func (t *trial) dels() error {
	var calls []*call
	var errs []error
	for _, p := range t.pods {
		t.ending(p)
		c, err := t.verb(death{}, "DEL", p)
		if errs = append(errs, p.down(), err); err == nil {
			calls = append(calls, c)
		}
	}
	for _, c := range calls {
		errs = append(errs, works(c, nil))
	}
	for _, p := range t.pods {
		errs = append(errs, p.uncache())
	}
	return errors.Join(errs...)
}

// records looks whether all are there that have to be, and whether each of this trial's is whole.
func (t *trial) records() error {
	want := t.acknowledged(t.journal)
	there := map[attachment.Key]*attachment.Record{}
	err := journal.At(t.journal).ViewWithin(context.Background(), patience, func(tx *journal.Tx) error {
		err := tx.Each(func(r *attachment.Record) error { there[r.Key] = r; return nil })
		return errors.Join(append(tx.Check(), err)...)
	})
	for k := range t.acknowledged(t.journal) { // less those whose DEL began meanwhile
		if r := there[k]; want[k] && (r == nil || r.State != attachment.Attached) {
			t.verdict.lost = append(t.verdict.lost, k.String())
		}
	}
	for _, p := range t.pods {
		if r := there[p.key()]; r != nil && r.State == attachment.Attached && len(r.Resources) < resources {
			err = errors.Join(err, fmt.Errorf("the record of %s is not whole: %v", p.id, r.Resources))
		}
	}
	return err
}

// gone looks whether every DEL that was acknowledged still is.
func (t *trial) gone() error {
	return journal.At(t.journal).ViewWithin(context.Background(), patience, func(tx *journal.Tx) error {
		for _, p := range t.pods {
			r, err := tx.Get(p.key())
			if err != nil {
				return err
			}
			if r != nil && r.State == attachment.Attached {
				t.verdict.lost = append(t.verdict.lost, "the DEL of "+p.id)
			}
		}
		return nil
	})
}

// node compares with what was there before the pods. Where a DEL left something, a sweep comes first.
func (t *trial) node() error {
	now, err := look()
	if err == nil && len(now.Minus(t.base)) > 0 {
		if err = works(t.ctl(death{}, t.journal, "sweep", "--yes")); err == nil {
			now, err = look()
		}
	}
	if err == nil {
		t.verdict.foreign = append(t.verdict.foreign, t.base.Minus(now)...)
		t.verdict.left = append(t.verdict.left, now.Minus(t.base)...)
	}
	return err
}

// leftovers looks for files.
func (t *trial) leftovers() {
	left := files(t.journal)
	for _, p := range t.pods {
		if _, err := os.Lstat(p.reservation()); err == nil {
			left = append(left, p.reservation())
		}
	}
	t.verdict.left = append(t.verdict.left, left...)
}

// passes reads a trace: how often each point was passed.
func passes(file string) (map[string]int, error) {
	b, err := os.ReadFile(file)
	out := map[string]int{}
	for _, name := range strings.Fields(string(b)) {
		out[name]++
	}
	return out, ignoreMissing(err)
}

// between is after how many plays the primary acknowledges what it owes.
const between = 25

// play plays an act with a death.
func (w *world) play(a act, d death) *verdict {
	t := &trial{world: w, death: d, journal: w.journal}
	if a.fresh {
		w.serial++
		t.journal = fmt.Sprintf("/var/lib/cni/fresh%d/journal.db", w.serial)
	}
	w.others.play()
	if err := a.play(t); err != nil {
		t.verdict.other = append(t.verdict.other, err)
	}
	t.judge()
	if w.played++; w.played%between == 0 {
		if err := w.acknowledge(); err != nil {
			t.verdict.other = append(t.verdict.other, err)
		}
	}
	return &t.verdict
}

// acknowledge has everything replayed that is owed. Afterwards no replay's private directory is there.
func (w *world) acknowledge() error {
	w.gate.Lock()
	defer w.gate.Unlock()
	for _, p := range w.everyone {
		if err := p.up(); err != nil {
			return err
		}
	}
	err := works(w.ctl(death{}, w.journal, "replay", "--yes"))
	for _, p := range w.everyone {
		err = errors.Join(err, p.down())
	}
	if left, _ := filepath.Glob(filepath.Join(journalDir, "replay-*")); len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("left by a killed replay: %q", left))
	}
	return err
}
