package journal

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

func dueAt(id string, m attachment.Moment) *attachment.Record {
	r := rec(id, "10.0.0.2", "veth1", 12)
	r.Due = m
	return r
}

func enter(t *testing.T, j *Journal, now attachment.Moment) {
	t.Helper()
	update(t, j, func(tx *Tx) error { return tx.EnterBoot(now) })
}

func TestDueGivesTheMostOverdueFirst(t *testing.T) {
	j := newJournal(t)
	enter(t, j, at(1))
	// The keys' own order, and that of their decimal digits, is another one.
	put(t, j, dueAt("c1", at(300)), dueAt("c2", at(1000)), dueAt("c3", at(20)), dueAt("c4", at(100)), dueAt("c5", at(-5)))
	view(t, j, func(tx *Tx) error {
		want(t, "nothing is due", []string{"c5"})(ids(tx.Due(at(19), 10)))
		want(t, "to the second", []string{"c5", "c3", "c4"})(ids(tx.Due(at(100), 10)))
		want(t, "all", []string{"c5", "c3", "c4", "c1", "c2"})(ids(tx.Due(at(5000), 10)))
		want(t, "two at most", []string{"c5", "c3"})(ids(tx.Due(at(5000), 2)))
		want(t, "none wanted", []string{})(ids(tx.Due(at(5000), 0)))
		return nil
	})
}

// The boot clock begins anew with each boot: what was noted as due in an hour of
// the former boot must not wait for that hour of this one.
func TestEverythingIsDueAfterAReboot(t *testing.T) {
	j := newJournal(t)
	enter(t, j, at(1))
	put(t, j, dueAt("c1", at(3600)), dueAt("c2", at(7200)))
	reboot := attachment.Moment{BootID: "b2", BootTime: 5e9, Wall: at(9000).Wall}

	view(t, j, func(tx *Tx) error {
		want(t, "in the former boot", []string{})(ids(tx.Due(at(10), 10)))
		want(t, "before the first change", []string{"c1", "c2"})(ids(tx.Due(reboot, 10)))
		want(t, "the most overdue of them", []string{"c1"})(ids(tx.Due(reboot, 1)))
		return nil
	})

	enter(t, j, reboot)
	later := reboot
	later.BootTime += 60e9
	put(t, j, dueAt("c3", later)) // of the new boot
	view(t, j, func(tx *Tx) error {
		want(t, "after it", []string{"c1", "c2"})(ids(tx.Due(reboot, 10)))
		r, err := tx.Get(key("c2"))
		if err != nil || r.Due != (attachment.Moment{BootID: "b2", Wall: reboot.Wall}) {
			t.Errorf("c2 is due at %+v, %v", r.Due, err)
		}
		return nil
	})
	rebuilt(t, j, "after a reboot")
}

func TestEnterBootLeavesTheRecordsOfThisBootAlone(t *testing.T) {
	j := newJournal(t)
	enter(t, j, at(1))
	put(t, j, dueAt("c1", at(3600)))
	before := contents(t, j, allBuckets...)
	enter(t, j, at(50))
	if after := contents(t, j, allBuckets...); !reflect.DeepEqual(after, before) {
		t.Errorf("got %v\nwant %v", after, before)
	}
}

// A live attachment has no time at which a sweep must see it, and no entry. After
// a reboot it must be looked at like the others.
func TestRecordsWithoutATime(t *testing.T) {
	j := newJournal(t)
	enter(t, j, at(1))
	live := dueAt("c1", attachment.Moment{})
	put(t, j, live, dueAt("c2", at(50)))
	enter(t, j, at(2))
	view(t, j, func(tx *Tx) error {
		want(t, "in its boot", []string{"c2"})(ids(tx.Due(at(1e6), 10)))
		return nil
	})
	reboot := attachment.Moment{BootID: "b2", BootTime: 1}
	enter(t, j, reboot)
	view(t, j, func(tx *Tx) error {
		want(t, "in the next", []string{"c1", "c2"})(ids(tx.Due(reboot, 10)))
		return nil
	})
	live.Due = attachment.Moment{}
	live.Node.Now = reboot
	put(t, j, live)
	rebuilt(t, j, "the time was taken away")
}

func TestSoonestDoesNotAskForTheTime(t *testing.T) {
	j := newJournal(t)
	enter(t, j, at(1))
	put(t, j, dueAt("c1", at(3600)), dueAt("c2", at(50)), dueAt("c3", at(7200)))
	view(t, j, func(tx *Tx) error {
		want(t, "all", []string{"c2", "c1", "c3"})(ids(tx.Soonest(at(1), 10)))
		want(t, "two", []string{"c2", "c1"})(ids(tx.Soonest(at(1), 2)))
		return nil
	})
}

// What dies without any DEL is met by a sample in the end, wherever it stands.
func TestSampleMeetsEveryRecord(t *testing.T) {
	j := newJournal(t)
	met := map[attachment.Key]int{}
	nothing := func(tx *Tx) error {
		if k, ok := tx.Sample(); ok {
			t.Errorf("a sample of nothing: %s", k)
		}
		return nil
	}
	view(t, j, nothing)
	enter(t, j, at(1))
	view(t, j, nothing)
	var all []*attachment.Record
	for _, network := range []string{"net-a", "net", "other"} {
		for _, id := range []string{"00ff", "3c12", "a0", "fe91"} {
			r := rec(id, "10.0.0.2", "veth1", 12)
			r.Network = network
			all = append(all, r)
		}
	}
	put(t, j, all...)
	view(t, j, func(tx *Tx) error {
		for range 20000 {
			if k, ok := tx.Sample(); ok {
				met[k]++
			}
		}
		return nil
	})
	for _, r := range all {
		if met[r.Key] == 0 {
			t.Errorf("%s was never met", r.Key)
		}
		delete(met, r.Key)
	}
	if len(met) > 0 {
		t.Errorf("met and not there: %v", met)
	}
}

func TestSomeGoesRoundOnce(t *testing.T) {
	j := newJournal(t)
	enter(t, j, at(1))
	all := []string{"00", "3c", "a0", "fe"}
	for _, id := range all {
		put(t, j, rec(id, "10.0.0.2", "veth1", 12))
	}
	view(t, j, func(tx *Tx) error {
		for range 50 { // from wherever it begins
			got, _ := ids(tx.Some(3), nil)
			start := slices.Index(all, got[0])
			round := slices.Concat(all[start:], all[:start])
			if !reflect.DeepEqual(got, round[:3]) {
				t.Fatalf("three are %v", got)
			}
			if got, _ := ids(tx.Some(100), nil); len(got) != len(all) {
				t.Fatalf("a hundred are %v", got)
			}
		}
		return nil
	})
	view(t, newJournal(t), func(tx *Tx) error {
		want(t, "of nothing", []string{})(ids(tx.Some(3), nil))
		return nil
	})
}

// A record made before the first EnterBoot of its boot keeps its time.
func TestEnterBootKeepsWhatIsOfTheNewBootAlready(t *testing.T) {
	j := newJournal(t)
	put(t, j, dueAt("c1", at(3600)), dueAt("c2", attachment.Moment{BootID: "b0", BootTime: 1e15}))
	enter(t, j, at(1))
	view(t, j, func(tx *Tx) error {
		want(t, "due", []string{"c2"})(ids(tx.Due(at(2), 10)))
		return nil
	})
}

// Entries that lead nowhere stand at the head of the index for ever.
func TestDuePassesOverWhatLeadsNowhere(t *testing.T) {
	j := newJournal(t)
	enter(t, j, at(1))
	put(t, j, dueAt("good", at(10)))
	for i := range 5 {
		id := fmt.Sprintf("bad%d", i)
		put(t, j, dueAt(id, at(i)))
		update(t, j, func(tx *Tx) error {
			return tx.bucket(bucketAttachments).Put([]byte(key(id).String()), []byte("{half"))
		})
	}
	update(t, j, func(tx *Tx) error {
		for _, k := range []string{"\x00", "\x00\x00\x00\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x00\x00\x01no key", string(dueKey(at(1), key("gone")))} {
			if err := tx.bucket(bucketDue).Put([]byte(k), nil); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, j, func(tx *Tx) error {
		want(t, "in this boot", []string{"good"})(ids(tx.Due(at(10), 4)))
		want(t, "in the next", []string{"good"})(ids(tx.Due(attachment.Moment{BootID: "b2"}, 4)))
		return nil
	})
}

func TestDueKeysSortLikeTheirTimes(t *testing.T) {
	k := dueKey(at(7), key("c1"))
	if got := binary.BigEndian.Uint64(k); got != 7e9 || string(k[8:]) != "net/c1/eth0" {
		t.Errorf("%d, %q", got, k[8:])
	}
	if got := binary.BigEndian.Uint64(dueKey(at(-7), key("c1"))); got != 0 {
		t.Errorf("before the boot: %d, which is the last of all", got)
	}
}
