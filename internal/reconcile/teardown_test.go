package reconcile

import (
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
)

// A teardown takes out all that one pod had, and nothing of the pod beside it.
func TestTearDown(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.addPod("other", "eni2", "10.0.0.6", 2)
		before := b.view()
		rec := b.addPod("pod", "eni1", "10.0.0.5", 2)
		b.put(rec, b.capture("other", `{"interfaces":[{"name":"eni2"}]}`))
		b.rule("pref 1024 fwmark 0x80/0x80 lookup main")

		torn := b.tearDown(attachment.Owed, "pod", "nobody")
		if len(torn) != 1 || torn[0].Outcome.Err != nil || len(torn[0].Outcome.Removed) != 4 {
			t.Errorf("torn down: %+v", torn)
		}
		b.changed(before, "+ rule4 1024: from all fwmark 0x80/0x80 lookup main")
		r := b.state("pod", attachment.Owed)
		if r.Attempts != 1 || r.LastError != "" || !noted(r, "removed rule 512: from all to 10.0.0.5 lookup main") || !noted(r, "a test says so") {
			t.Errorf("%+v", r)
		}
		b.state("other", attachment.Attached)
		// Once more: there is nothing, and that is no error.
		torn = b.tearDown(attachment.Owed, "pod")
		if len(torn) != 1 || torn[0].Outcome.Err != nil || len(torn[0].Outcome.Removed) != 0 {
			t.Errorf("torn down again: %+v", torn)
		}
	})
}

// TestIntentComesFirst holds that a process killed between intent and outcome leaves a record that a sweep finishes, however
// far the removal had come.
func TestIntentComesFirst(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		empty := b.view()
		b.put(b.addPod("begun", "eni1", "10.0.0.5", 2), b.addPod("halfway", "eni2", "10.0.0.6", 2))
		full := b.view()

		s := b.session()
		err := s.Update(func(tx *journal.Tx) error {
			var recs []*attachment.Record
			for _, id := range []string{"begun", "halfway"} {
				r, err := tx.Get(b.record(id).Key)
				if err != nil {
					return err
				}
				recs = append(recs, r)
			}
			_, err := b.Begin(tx, Job{Why: "killed", Settle: Always(attachment.Owed)}, recs...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Unlock() // the kernel does it when a process dies
		b.changed(full)
		for _, id := range []string{"begun", "halfway"} {
			if r := b.state(id, attachment.Tearing); r.Attempts != 1 || !noted(r, "killed") {
				t.Errorf("%s: %+v", id, r)
			}
		}
		b.ip("rule del pref 512 to 10.0.0.6", "link del eni2")

		got := b.sweep()
		b.ip("netns del begun", "netns del halfway")
		b.changed(empty)
		for _, id := range []string{"begun", "halfway"} {
			if r := b.state(id, attachment.Owed); r.Attempts != 2 || got[id].Err != nil {
				t.Errorf("%s: %v, %+v", id, got[id].Err, r)
			}
		}
	})
}

// An intent that cannot be written removes nothing.
func TestIntentThatFails(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		rec := b.addPod("pod", "eni1", "10.0.0.5", 2)
		b.put(rec)
		before := b.view()
		s := b.session()
		err := s.Update(func(tx *journal.Tx) error {
			closed := *rec
			closed.State = attachment.Closed // cannot go back to "tearing"
			_, err := b.Begin(tx, Job{Why: "x", Settle: Always(attachment.Owed)}, &closed)
			return err
		})
		s.Unlock()
		if err == nil {
			t.Error("a closed record can be torn down")
		}
		b.changed(before)
		b.state("pod", attachment.Attached)
	})
}

// A late DEL of a pod whose address, rule and veth name the next pod has by now (calico #10375, kubernetes #131775)
// takes out the rule that differs, and nothing else.
func TestLateTearDownAfterReuse(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.put(b.addPod("old", "eni1", "10.0.0.5", 2))
		b.kill("old", "eni1")
		b.admit(b.addPod("new", "eni1", "10.0.0.5", 3))
		before := b.view()
		torn := b.tearDown(attachment.Owed, "old")
		b.changed(before, "- rule4 1536: from 10.0.0.5 lookup 2")
		if len(torn) != 1 || torn[0].Outcome.Err != nil || !strings.Contains(torn[0].Outcome.Plan.String(), "claimed  rule 512: from all to 10.0.0.5 lookup main (by net/new/eth0 (live))") {
			t.Errorf("%v\n%s", torn[0].Outcome.Err, torn[0].Outcome.Plan)
		}
		b.state("old", attachment.Owed)
		b.state("new", attachment.Attached)
	})
}

// The next pod is there already, and its ADD has not come to backstop yet: only the kernel tells of it.
func TestLateTearDownBeforeTheNextRecord(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.put(b.addPod("old", "eni1", "10.0.0.5", 2))
		b.kill("old", "eni1")
		b.addPod("new", "eni1", "10.0.0.5", 2)
		before := b.view()
		b.tearDown(attachment.Owed, "old")
		b.changed(before)
	})
}

// Two live pods with one address (two networks of one IPAM, say): each claims the rules against the other's teardown, but
// records of one batch do not claim against each other.
func TestBatchDoesNotClaimAgainstItself(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.put(b.addPod("one", "eni1", "10.0.0.5", 2), b.addPod("two", "eni2", "10.0.0.5", 2))
		before := b.view()
		b.tearDown(attachment.Owed, "one", "two")
		b.changed(before, "- link eni1 kind veth up", "- link eni2 kind veth up", "- route4 10.0.0.5 dev eni2 scope link",
			"- rule4 1536: from 10.0.0.5 lookup 2", "- rule4 512: from all to 10.0.0.5 lookup main")
	})
}

func TestOneOfTwoIsTornDown(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.put(b.addPod("one", "eni1", "10.0.0.5", 2), b.addPod("two", "eni2", "10.0.0.5", 2))
		before := b.view()
		b.tearDown(attachment.Owed, "one")
		b.changed(before, "- link eni1 kind veth up")
		if r := b.get("one"); !noted(r, "removed link eni1") || noted(r, "removed rule") {
			t.Errorf("%+v", r.Events)
		}
	})
}

// A rule that the kernel would miss for another one is not asked for: the other one would go. It stays an
// unfinished teardown, and a sweep ends it when the way is free.
func TestRuleBehindAnother(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.rule("pref 512 to 10.0.0.5 fwmark 0x1 lookup main") // somebody else's, and first
		rec := b.addPod("pod", "eni1", "10.0.0.5", 2)
		rec.Resources = dropRules(rec.Resources, "fwmark")
		b.put(rec)
		before := b.view()
		torn := b.tearDown(attachment.Owed, "pod")
		b.changed(before, "- link eni1 kind veth up", "- route4 10.0.0.5 dev eni1 scope link", "- rule4 1536: from 10.0.0.5 lookup 2")
		if torn[0].Outcome.Err == nil || !strings.Contains(torn[0].Outcome.Err.Error(), "another rule first") {
			t.Errorf("error %v", torn[0].Outcome.Err)
		}
		if r := b.state("pod", attachment.Tearing); r.LastError == "" || r.Due.BootTime <= b.Now().BootTime {
			t.Errorf("last error %q, due %v", r.LastError, r.Due)
		}
		b.ip("rule del pref 512 to 10.0.0.5 fwmark 0x1")
		b.ip("netns del pod")
		b.sweep()
		if r := b.state("pod", attachment.Owed); r.LastError != "" {
			t.Errorf("last error %q", r.LastError)
		}
		if left := b.view().String(); strings.Contains(left, "10.0.0.5") {
			t.Errorf("left:\n%s", left)
		}
	})
}

func dropRules(all []attachment.Resource, with string) []attachment.Resource {
	var out []attachment.Resource
	for _, r := range all {
		if r.Rule == nil || !strings.Contains(r.Rule.String(), with) {
			out = append(out, r)
		}
	}
	return out
}
