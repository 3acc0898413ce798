package reconcile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// A primary that restarted with empty state answers "unknown pod" with success, and leaves both rules (AWS VPC CNI).
// The sweep after the grace takes them out.
func TestSweepOfWhatThePrimaryLeft(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		before := b.view()
		for i, id := range []string{"acknowledged", "unfinished", "running", "refused"} {
			r := b.deferred(b.addPod(id, fmt.Sprint("eni", i), fmt.Sprint("10.0.0.", 5+i), 2))
			switch id {
			case "unfinished": // libcni keeps its entry when the list's DEL failed
				b.cacheEntry(r.Key)
			case "running":
				r.Settings.Grace = time.Hour
			case "refused":
				r.Del.Refused = true
			}
			b.put(r)
			b.kill(id, fmt.Sprint("eni", i))
		}
		got := b.sweep()
		b.changed(before, "+ rule4 1536: from 10.0.0.7 lookup 2", "+ rule4 512: from all to 10.0.0.7 lookup main")
		if r := b.state("acknowledged", attachment.Closed); !noted(r, "acknowledged, but left 2 resources") {
			t.Errorf("%v", r.Events)
		}
		b.state("unfinished", attachment.Owed)
		b.state("refused", attachment.Owed)
		b.state("running", attachment.Deferred)
		if got["running"].Action != teardown.Wait || got["acknowledged"].Action != teardown.Examine {
			t.Errorf("%+v", got)
		}
	})
}

// cacheEntry is the runtime's, as libcni names it.
func (b *bench) cacheEntry(k attachment.Key) {
	b.t.Helper()
	path := filepath.Join(b.cache, "results", k.Network+"-"+k.ContainerID+"-"+k.IfName)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{}"), 0o600)); err != nil {
		b.t.Fatal(err)
	}
}

// No DEL ever came: a live pod is left alone for ever, a dead one has its grace first.
func TestSweepWithoutAnyDel(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.put(b.addPod("live", "eni1", "10.0.0.5", 2))
		before := b.view()
		b.put(b.addPod("dead", "eni2", "10.0.0.6", 2))
		patient := b.addPod("patient", "eni3", "10.0.0.7", 2)
		patient.Settings.Grace = time.Hour
		b.put(patient)
		b.kill("dead", "eni2")
		b.kill("patient", "eni3")
		leftovers := b.view()

		first := b.sweep()
		b.changed(leftovers)
		if r := b.state("dead", attachment.Attached); r.DeadSince == nil || first["dead"].Action != teardown.MarkDead {
			t.Errorf("%+v, dead since %v", first["dead"], r.DeadSince)
		}
		second := b.sweep()
		b.changed(before, "+ rule4 1536: from 10.0.0.7 lookup 2", "+ rule4 512: from all to 10.0.0.7 lookup main")
		b.state("dead", attachment.Owed) // nobody asked the primary
		if r := b.state("live", attachment.Attached); r.DeadSince != nil || second["live"].Action != teardown.Wait {
			t.Errorf("%+v, dead since %v", second["live"], r.DeadSince)
		}
		if r := b.state("patient", attachment.Attached); r.DeadSince == nil || second["patient"].Action != teardown.Wait {
			t.Errorf("%+v, dead since %v", second["patient"], r.DeadSince)
		}
	})
}

// A record of another boot or host namespace is never carried out, although all that it names is there.
func TestSweepForgetsOtherNodes(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		boot, netns := b.addPod("boot", "eni1", "10.0.0.5", 2), b.deferred(b.addPod("netns", "eni2", "10.0.0.6", 2))
		boot.Node.Now.BootID, netns.Node.Netns.Ino = "another", 1
		tearing := b.addPod("tearing", "eni3", "10.0.0.7", 2)
		tearing.State, tearing.Node.Now.BootID = attachment.Tearing, "another"
		b.put(boot, netns, tearing)
		before := b.view()
		got := b.sweep()
		b.changed(before)
		b.state("boot", attachment.Owed)
		b.state("tearing", attachment.Owed)
		b.state("netns", attachment.Closed) // its DEL was acknowledged
		for id, s := range got {
			if s.Action != teardown.Forget {
				t.Errorf("%s: %s", id, s.Action)
			}
		}
		b.tearDown(attachment.Owed, "boot")
		b.changed(before)
	})
}

func TestSweepOfRecordsOnly(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		r := b.deferred(b.addPod("pod", "eni1", "10.0.0.5", 2))
		r.Settings.Teardown = "never"
		b.put(r)
		b.kill("pod", "eni1")
		before := b.view()
		b.sweep()
		b.changed(before)
		if r := b.state("pod", attachment.Closed); !noted(r, `2 resources are left: teardown is "never"`) {
			t.Errorf("%v", r.Events)
		}
	})
}

// fakePod puts a dead pod's leftovers into a fake, and its record into the journal.
func (b *bench) fakePod(f *kernel.Fake, id, ip string) *attachment.Record {
	b.t.Helper()
	if err := f.IP("rule add pref 512 to " + ip + " lookup main"); err != nil {
		b.t.Fatal(err)
	}
	r := b.deferred(b.record(id))
	got, err := kernel.Capture(f, kernel.Target{Result: attachment.ParseResult([]byte(`{"ips":[{"address":"` + ip + `/32"}]}`)), IfName: "eth0"})
	if err != nil || len(got.Resources) != 1 {
		b.t.Fatal(got.Resources, err)
	}
	r.IPs, r.Resources = got.IPs, got.Resources
	r.Due = attachment.Moment{BootID: b.Node.Now.BootID}
	b.put(r)
	return r
}

// What cannot be read is not gone: the record stays unfinished, says why, and ends when the kernel answers.
func TestSweepOfWhatCannotBeRead(t *testing.T) {
	for _, method := range []string{"Rules", "Delete", "RouteTo"} {
		t.Run(method, func(t *testing.T) {
			f := kernel.NewFake()
			b := newBench(t, f)
			clean := f.String()
			b.fakePod(f, "pod", "10.0.0.5")
			b.fakePod(f, "beside", "10.0.0.6")
			full := f.String()
			f.Break(method, kernel.ErrInterrupted)
			got := b.sweep()
			for _, id := range []string{"pod", "beside"} { // an error on one does not stop the others
				r, err := b.state(id, attachment.Tearing), got[id].Err
				if why := kernel.ErrInterrupted.Error(); err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(r.LastError, why) {
					t.Errorf("%s: last error %q, %v", id, r.LastError, err)
				}
			}
			if f.String() != full {
				t.Errorf("the node changed to\n%s", f)
			}
			f.Break(method, nil)
			b.sweep()
			if f.String() != clean {
				t.Errorf("left:\n%s", f)
			}
			if r := b.state("pod", attachment.Closed); r.LastError != "" || r.Attempts != 2 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// More records than one lock is held for, and a caller who gives up between two.
func TestSweepAllInChunks(t *testing.T) {
	f := kernel.NewFake()
	b := newBench(t, f)
	clean := f.String()
	const many = Chunk + 6
	for i := range many {
		b.fakePod(f, fmt.Sprintf("pod%03d", i), fmt.Sprint("10.0.1.", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	err := b.SweepAll(ctx, b.j, patience, func(Swept) { seen++; cancel() })
	if !errors.Is(err, context.Canceled) || seen != Chunk {
		t.Errorf("given up in the first chunk: %d records, %v; want the chunk of %d to its end", seen, err, Chunk)
	}
	if got := b.sweep(); len(got) != many-Chunk || f.String() != clean {
		t.Errorf("%d records in the second sweep, left is\n%s", len(got), f)
	}
}

// The sweep that a pod's start pays for does a few records, and stops when time is up.
func TestSweepDueIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		slow time.Duration
		want int
	}{
		"by number": {0, shortRecords},
		"by time":   {2 * shortTime, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := kernel.NewFake()
			b := newBench(t, f)
			b.Kernel = slowKernel{f, c.slow}
			var keys []attachment.Key
			for i := range shortRecords + 3 {
				keys = append(keys, b.fakePod(f, fmt.Sprint("pod", i), fmt.Sprint("10.0.1.", i)).Key)
			}
			rules := strings.Count(f.String(), "10.0.1.")
			s := b.session()
			// In the bubble only the pauses take time, not this machine's disk.
			synctest.Test(t, func(*testing.T) { b.SweepDue(s, keys) })
			s.Unlock()
			if done := rules - strings.Count(f.String(), "10.0.1."); done != c.want {
				t.Errorf("%d records, want %d", done, c.want)
			}
			b.state("pod0", attachment.Closed)
			b.state(fmt.Sprint("pod", c.want), attachment.Deferred)
		})
	}
}

// slowKernel takes its time for each look at the rules, as a node with very many does.
type slowKernel struct {
	*kernel.Fake
	pause time.Duration
}

func (k slowKernel) Rules(f attachment.RuleFilter) ([]attachment.Rule, error) {
	time.Sleep(k.pause)
	return k.Fake.Rules(f)
}

// A sweep of what nobody has is no error, and one that gets no lock says so.
func TestSweepWithoutJournalOrLock(t *testing.T) {
	b := newBench(t, kernel.NewFake())
	if got := b.sweep(); len(got) != 0 || b.j.Exists() {
		t.Errorf("%v; the journal exists: %v", got, b.j.Exists())
	}
	b.put(b.deferred(b.record("pod")))
	s := b.session()
	defer s.Unlock()
	err := b.SweepAll(t.Context(), b.j, time.Millisecond, func(Swept) { t.Error("swept without the lock") })
	if !errors.Is(err, journal.ErrBusy) {
		t.Errorf("%v", err)
	}
}
