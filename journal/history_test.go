package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

func history(t *testing.T, j *Journal) (out []string, err error) {
	t.Helper()
	view(t, j, func(tx *Tx) error {
		err = tx.History(func(r *attachment.Record) error { out = append(out, r.ContainerID); return nil })
		return nil
	})
	return out, err
}

func closed(id string) *attachment.Record {
	r := rec(id, "10.0.0.2", "veth1", 12)
	r.State = attachment.Closed
	return r
}

func TestHistoryIsBoundedAndTheLatestComesFirst(t *testing.T) {
	j := newJournal(t)
	const more = HistoryLimit + 7
	update(t, j, func(tx *Tx) error {
		for i := range more {
			if err := tx.Put(closed(fmt.Sprintf("c%d", i))); err != nil {
				return err
			}
		}
		return nil
	})
	got, err := history(t, j)
	if err != nil || len(got) != HistoryLimit {
		t.Fatalf("%d closed records, %v; want %d", len(got), err, HistoryLimit)
	}
	for i, id := range got {
		if want := fmt.Sprintf("c%d", more-1-i); id != want {
			t.Fatalf("number %d is %s, want %s", i, id, want)
		}
	}
}

// The same container and interface can be closed, and superseded, many times.
func TestHistoryKeepsEveryLifeOfAKey(t *testing.T) {
	j := newJournal(t)
	r := rec("c1", "10.0.0.2", "veth1", 12)
	for i := range 3 {
		r.LastError = fmt.Sprintf("life %d", i)
		update(t, j, func(tx *Tx) error { return tx.Remember(r) })
	}
	var got []string
	view(t, j, func(tx *Tx) error {
		return tx.History(func(r *attachment.Record) error { got = append(got, r.LastError); return nil })
	})
	if w := []string{"life 2", "life 1", "life 0"}; !reflect.DeepEqual(got, w) {
		t.Errorf("got %v, want %v", got, w)
	}
}

// Arguments may hold what users pass to plugins. What an operator asks for
// afterwards has to stay.
func TestHistoryDropsWhatOnlyAReplayNeeds(t *testing.T) {
	j := newJournal(t)
	const secret = "s3cr3t"
	r := rec("c1", "10.0.0.2", "veth1", 12)
	r.State, r.LastError, r.Del = attachment.Closed, "what went wrong", &attachment.Del{Count: 2, Last: at(9)}
	r.Note(at(3), "removed something")
	r.CNIArgs, r.CNIPath = "TOKEN="+secret, "/opt/"+secret
	r.PrevResult = json.RawMessage(`{"x":"` + secret + `"}`)
	r.Replay = &attachment.Replay{CacheEntry: json.RawMessage(`{"cniArgs":"` + secret + `"}`), CNIPath: secret}
	r.Pod = []attachment.Resource{{Kind: attachment.KindAddress, Share: attachment.Own, Address: &attachment.Address{Dev: secret}}}
	before, _ := json.Marshal(r)
	put(t, j, r)

	if after, _ := json.Marshal(r); string(after) != string(before) {
		t.Errorf("the caller's record became %s", after)
	}
	for _, v := range contents(t, j, allBuckets...)["history"] {
		if strings.Contains(v, secret) {
			t.Errorf("kept: %s", v)
		}
	}
	view(t, j, func(tx *Tx) error {
		if open, err := tx.Get(r.Key); open != nil || err != nil {
			t.Errorf("still open: %v, %v", open, err)
		}
		return tx.History(func(got *attachment.Record) error {
			want := *r
			want.Version, want.CNIArgs, want.CNIPath, want.PrevResult, want.Replay, want.Pod = attachment.RecordVersion, "", "", nil, nil, nil
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("got %+v\nwant %+v", *got, want)
			}
			return nil
		})
	})
}

func TestABadHistoryEntryDoesNotHideTheOthers(t *testing.T) {
	j := newJournal(t)
	put(t, j, closed("c1"), closed("c2"), closed("c3"))
	update(t, j, func(tx *Tx) error {
		return tx.bucket(bucketHistory).Put([]byte{0, 0, 0, 0, 0, 0, 0, 2}, []byte("{half"))
	})
	got, err := history(t, j)
	if !reflect.DeepEqual(got, []string{"c3", "c1"}) || err == nil || !strings.Contains(err.Error(), "0000000000000002") {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestHistoryStopsWhenTold(t *testing.T) {
	j := newJournal(t)
	put(t, j, closed("c1"), closed("c2"))
	enough, n := errors.New("enough"), 0
	view(t, j, func(tx *Tx) error {
		if err := tx.History(func(*attachment.Record) error { n++; return enough }); !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
		return nil
	})
	if n != 1 {
		t.Errorf("%d records seen", n)
	}
}

func TestWasClosed(t *testing.T) {
	j := newJournal(t)
	view(t, j, func(tx *Tx) error {
		if tx.WasClosed("c1", "eth0", nil) {
			t.Error("in an empty journal")
		}
		return nil
	})
	superseded := rec("c9", "10.0.0.9", "veth9", 19)
	update(t, j, func(tx *Tx) error {
		return errors.Join(tx.Put(closed("c1")), tx.Put(rec("c2", "10.0.0.3", "veth2", 13)), tx.Remember(superseded))
	})
	update(t, j, func(tx *Tx) error {
		return tx.bucket(bucketHistory).Put([]byte("zzzzzzzz"), []byte(`{"containerID":"c4"`))
	})
	for id, want := range map[string]bool{"c1": true, "c2": false, "c9": false, "c": false, "c4": false, "net": false} {
		view(t, j, func(tx *Tx) error {
			if got := tx.WasClosed(id, "eth0", closed(id).IPs); got != want {
				t.Errorf("%s: %t, want %t", id, got, want)
			}
			if tx.WasClosed(id, "eth1", closed(id).IPs) {
				t.Errorf("%s: another interface", id)
			}
			if tx.WasClosed(id, "eth0", []netip.Addr{netip.MustParseAddr("10.77.0.1")}) {
				t.Errorf("%s: another address", id)
			}
			return nil
		})
	}
}
