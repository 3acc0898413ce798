package journal

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

func TestGetGivesWhatWasPut(t *testing.T) {
	j := newJournal(t)
	r := rec("c1", "10.0.0.2", "veth1", 12)
	r.PrevResult = json.RawMessage(`{"zzz":[1,null],"ips":[]}`)
	r.Note(at(1), "ADD recorded")
	put(t, j, r)
	view(t, j, func(tx *Tx) error {
		got, err := tx.Get(r.Key)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, r)
		}
		if r.Version != attachment.RecordVersion {
			t.Errorf("stored with version %d", r.Version)
		}
		if got, err := tx.Get(key("c2")); got != nil || err != nil {
			t.Errorf("a record that is not there: %v, %v", got, err)
		}
		return nil
	})
}

func TestPutReplacesTheRecordOfItsKeyAlone(t *testing.T) {
	j := newJournal(t)
	other := rec("c1", "10.0.0.3", "veth3", 13)
	other.IfName = "net1"
	put(t, j, rec("c1", "10.0.0.2", "veth1", 12), other)
	put(t, j, rec("c1", "10.0.0.9", "veth9", 19))
	var got []string
	view(t, j, func(tx *Tx) error {
		return tx.Each(func(r *attachment.Record) error {
			got = append(got, r.Key.String()+" "+r.IPs[0].String())
			return nil
		})
	})
	if w := []string{"net/c1/eth0 10.0.0.9", "net/c1/net1 10.0.0.3"}; !reflect.DeepEqual(got, w) {
		t.Errorf("got %q, want %q", got, w)
	}
}

func TestEachGoesInTheOrderOfKeysAndStopsWhenTold(t *testing.T) {
	j := newJournal(t)
	for _, id := range []string{"c2", "c10", "c1"} {
		put(t, j, rec(id, "10.0.0.2", "veth1", 12))
	}
	enough := errors.New("enough")
	var seen []string
	view(t, j, func(tx *Tx) error {
		err := tx.Each(func(r *attachment.Record) error {
			if seen = append(seen, r.ContainerID); len(seen) == 2 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
		return nil
	})
	if !reflect.DeepEqual(seen, []string{"c1", "c10"}) {
		t.Errorf("saw %v", seen)
	}
}

func TestPutRefusesAKeyThatWouldBreakTheIndexes(t *testing.T) {
	j := newJournal(t)
	r := rec("c1", "10.0.0.2", "veth1", 12)
	r.ContainerID = "c1/eth0"
	if err := j.UpdateWithin(context.Background(), patience, func(tx *Tx) error { return tx.Put(r) }); err == nil {
		t.Error("it was stored")
	}
}

// What a transaction did before it failed must not be there.
func TestAFailedUpdateChangesNothing(t *testing.T) {
	j := newJournal(t)
	put(t, j, rec("c1", "10.0.0.2", "veth1", 12))
	before := contents(t, j, allBuckets...)
	no := errors.New("no")
	err := j.UpdateWithin(context.Background(), patience, func(tx *Tx) error {
		for _, r := range []*attachment.Record{rec("c1", "10.0.0.8", "veth8", 18), rec("c2", "10.0.0.3", "veth3", 13)} {
			if err := tx.Put(r); err != nil {
				return err
			}
		}
		return no
	})
	if !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	if after := contents(t, j, allBuckets...); !reflect.DeepEqual(after, before) {
		t.Errorf("got %v\nwant %v", after, before)
	}
}

// A record of a newer backstop, or a damaged one, must not hide the others.
func TestOneBadRecordDoesNotHideTheOthers(t *testing.T) {
	j := newJournal(t)
	for i, id := range []string{"c1", "c2", "c3", "c4"} {
		put(t, j, rec(id, "10.0.0.2", "veth1", 12+i))
	}
	bad := map[string]string{"c2": `{"version":99,"network":"net","containerID":"c2","ifName":"eth0"}`, "c3": "{half"}
	update(t, j, func(tx *Tx) error {
		for id, v := range bad {
			if err := tx.bucket(bucketAttachments).Put([]byte(key(id).String()), []byte(v)); err != nil {
				return err
			}
		}
		return nil
	})
	var good []string
	view(t, j, func(tx *Tx) error {
		err := tx.Each(func(r *attachment.Record) error { good = append(good, r.ContainerID); return nil })
		for id := range bad {
			if err == nil || !strings.Contains(err.Error(), key(id).String()) {
				t.Errorf("the error does not name %s: %v", id, err)
			}
			if r, err := tx.Get(key(id)); err == nil {
				t.Errorf("%s was read as %+v", id, r)
			}
		}
		want(t, "address index", []string{"c1", "c2", "c3", "c4"})(claimants(tx.ByIP(netip.MustParseAddr("10.0.0.2"))))
		want(t, "due", []string{"c1", "c4"})(ids(tx.Due(at(3600), 10)))
		return nil
	})
	if !reflect.DeepEqual(good, []string{"c1", "c4"}) {
		t.Errorf("saw %v", good)
	}
	put(t, j, rec("c2", "10.0.0.7", "veth7", 17))
	view(t, j, func(tx *Tx) error {
		if r, err := tx.Get(key("c2")); err != nil || r == nil || r.OwnLinks()[0].Name != "veth7" {
			t.Errorf("a new record in the place of the bad one: %+v, %v", r, err)
		}
		return nil
	})
}

func claimants(cs []attachment.Claim, err error) ([]string, error) {
	out := []string{}
	for _, c := range cs {
		out = append(out, c.ContainerID)
	}
	return out, err
}

func TestViewOfAnAbsentJournalIsEmptyAndCreatesNothing(t *testing.T) {
	j := newJournal(t)
	view(t, j, func(tx *Tx) error {
		if r, err := tx.Get(key("c1")); r != nil || err != nil {
			t.Errorf("Get: %v, %v", r, err)
		}
		nothing := func(*attachment.Record) error { t.Error("a record"); return nil }
		if err := errors.Join(tx.Each(nothing), tx.History(nothing)); err != nil {
			t.Error(err)
		}
		want(t, "due", []string{})(ids(tx.Due(at(3600), 10)))
		want(t, "by address", []string{})(claimants(tx.ByIP(netip.MustParseAddr("10.0.0.2"))))
		want(t, "by link", []string{})(ids(tx.ByLink("veth1", 12)))
		want(t, "by link name", []string{})(ids(tx.ByLinkName("veth1", 12)))
		want(t, "by container", []string{})(ids(tx.ByContainer("c1", "eth0")))
		return nil
	})
	if _, err := os.Lstat(filepath.Dir(j.Path())); err == nil {
		t.Error("the directory was made")
	}
}
