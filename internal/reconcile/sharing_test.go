package reconcile

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
	bolt "go.etcd.io/bbolt"
)

// addBranchPod has a rule by its veth's name, as a pod with a branch ENI has.
func (b *bench) addBranchPod(id, ip string, table string) *attachment.Record {
	b.t.Helper()
	b.ip("netns add "+id, "link add vlan1 type veth peer name eth0 netns "+id, "link set vlan1 up",
		"-n "+id+" link set eth0 up", "-n "+id+" addr add "+ip+"/32 dev eth0")
	b.rule("pref 10 iif vlan1 lookup " + table)
	return b.capture(id, `{"interfaces":[{"name":"vlan1"}],"ips":[{"address":"`+ip+`/32"}]}`)
}

// aws-vpc-cni #1375: "iif vlanaad671050aa [detached] lookup 101" beside the live "lookup 102" of the next pod, which
// has the same veth name and another address.
func TestRuleByTheNameThatTheNextPodHas(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.admit(b.addBranchPod("old", "10.0.0.5", "101"))
		b.kill("old", "vlan1")
		b.admit(b.addBranchPod("new", "10.0.0.6", "102"))
		before := b.view()
		b.tearDown(attachment.Owed, "old")
		b.changed(before, "- rule4 10: from all iif vlan1 lookup 101")
	})
}

// The same with one table: the rule that is there is the next pod's.
func TestRuleThatTheNextPodUses(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.admit(b.addBranchPod("old", "10.0.0.5", "101"))
		b.kill("old", "vlan1")
		b.admit(b.addBranchPod("new", "10.0.0.6", "101"))
		before := b.view()
		b.tearDown(attachment.Owed, "old")
		b.changed(before)
		b.kill("new", "vlan1")
		b.tearDown(attachment.Owed, "new")
		b.changed(before, "- link vlan1 kind veth up", "- rule4 10: from all iif vlan1 lookup 101")
	})
}

// A plan only looks.
func TestPlanSweepChangesNothing(t *testing.T) {
	f := kernel.NewFake()
	b := newBench(t, f)
	rec := b.fakePod(f, "pod", "10.0.0.5")
	full := f.String()
	s := b.PlanSweep(rec, nil)
	if s.Action != teardown.Examine || s.Plan.Count(teardown.Delete) != 1 {
		t.Errorf("%+v", s)
	}
	if f.String() != full {
		t.Errorf("the node changed to\n%s", f)
	}
	if r := b.state("pod", attachment.Deferred); len(r.Events) != 0 || rec.State != attachment.Deferred {
		t.Errorf("%+v", r)
	}
	rec.Settings.Grace = time.Hour
	if s := b.PlanSweep(rec, nil); s.Action != teardown.Wait || len(s.Plan.Steps) != 0 {
		t.Errorf("within the grace: %+v", s)
	}
}

// A record that cannot be read is named, and the others are swept.
func TestSweepBesideADamagedRecord(t *testing.T) {
	f := kernel.NewFake()
	b := newBench(t, f)
	clean := f.String()
	b.fakePod(f, "a", "10.0.0.5")
	b.fakePod(f, "z", "10.0.0.6")
	b.damage("m")
	seen := 0
	err := b.SweepAll(t.Context(), b.j, patience, func(s Swept) { seen++ })
	if err == nil || !strings.Contains(err.Error(), "net/m/eth0") || seen != 2 {
		t.Errorf("%d records, %v", seen, err)
	}
	if f.String() != clean {
		t.Errorf("left:\n%s", f)
	}
	b.state("a", attachment.Closed)
	b.state("z", attachment.Closed)
}

// damage puts something that is no record in the place of one.
func (b *bench) damage(id string) {
	b.t.Helper()
	db, err := bolt.Open(b.j.Path(), 0o600, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("attachments")).Put([]byte(b.record(id).Key.String()), []byte("{"))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		b.t.Fatal(err)
	}
}

// A damaged record with a pod's address must not keep the pod from being recorded. What it may claim is not known: nothing
// is removed over it while its attachment lives, and all once that is dead.
func TestDamagedRecordWithTheSameAddress(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.admit(b.addPod("old", "veth-old", "10.0.0.5", 101))
		b.damage("old")
		b.admit(b.addPod("new", "veth-new", "10.0.0.5", 102))
		before := b.view()
		s := b.session()
		_, err := b.TearDown(s, Job{Settle: Always(attachment.Owed)}, b.record("new").Key)
		s.Unlock()
		if err == nil || !strings.Contains(err.Error(), "net/old/eth0") {
			t.Errorf("torn down beside a live attachment whose claims cannot be read: %v", err)
		}
		b.changed(before)
		b.kill("old", "veth-old")
		b.tearDown(attachment.Owed, "new")
		if left := b.view().Matching(regexp.MustCompile("veth-new|lookup 102")); len(left) > 0 {
			t.Errorf("left beside a dead one:\n%s", left)
		}
	})
}

// Sharing finds every other open record by address and by link, each once, and never the record itself.
func TestSharing(t *testing.T) {
	b := newBench(t, kernel.NewFake())
	veth := func(name string, index int) attachment.Resource {
		return attachment.Resource{Kind: attachment.KindLink, Share: attachment.Own, Link: &attachment.Link{Index: index, Name: name, Kind: "veth"}}
	}
	rule := func(to string) attachment.Resource {
		return attachment.Resource{Kind: attachment.KindRule, Share: attachment.Own, Rule: &attachment.Rule{Dst: to, Raw: make([]byte, 12)}}
	}
	iif := func(name string) attachment.Resource {
		return attachment.Resource{Kind: attachment.KindRule, Share: attachment.Own, Rule: &attachment.Rule{IifName: name, Raw: make([]byte, 12)}}
	}
	records := map[string][]attachment.Resource{
		"self": {veth("eni1", 9), rule("10.0.0.5")}, "address": {rule("10.0.0.5")}, "name": {veth("eni1", 10)}, "device": {veth("eni1", 9)},
		"index": {veth("eni2", 9)}, "longer": {veth("eni10", 11), rule("10.0.0.50")}, "both": {veth("eni1", 12), rule("10.0.0.5")},
		"rule": {iif("eni1")}, "its": {veth("eni3", 13), iif("eni3")}, "bare": {iif("eni3")}, "barer": {iif("eni3")},
	}
	for id, all := range records {
		r := b.record(id)
		r.Resources = all
		b.put(r)
	}
	for what, c := range map[string]struct {
		ask  func(*journal.Tx, *attachment.Record) ([]teardown.Other, error)
		id   string
		want string
	}{
		"sharing an address or a name":         {b.SharingAddress, "self", "address both name rule"},
		"sharing anything":                     {b.Sharing, "self", "address both device name rule"},
		"sharing the name of its link":         {b.SharingAddress, "its", "bare barer"},
		"sharing a name that only rules have":  {b.SharingAddress, "bare", "barer its"},
		"sharing a rule by another one's link": {b.Sharing, "rule", "both device name self"},
	} {
		self := b.get(c.id)
		err := b.j.ViewWithin(t.Context(), patience, func(tx *journal.Tx) error {
			others, err := c.ask(tx, self)
			var ids []string
			for _, o := range others {
				ids = append(ids, o.Record.ContainerID)
			}
			slices.Sort(ids)
			if got := strings.Join(ids, " "); err != nil || got != c.want {
				t.Errorf("%s: %s (%v), want %s", what, got, err, c.want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
