package journal

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

// patience is a wait that only a lock that is never given back uses up.
const patience = 20 * time.Second

func newJournal(t *testing.T) *Journal { return At(filepath.Join(t.TempDir(), "cni", "journal.db")) }

func update(t *testing.T, j *Journal, fn func(*Tx) error) {
	t.Helper()
	if err := j.UpdateWithin(context.Background(), patience, fn); err != nil {
		t.Fatal(err)
	}
}

func view(t *testing.T, j *Journal, fn func(*Tx) error) {
	t.Helper()
	if err := j.ViewWithin(context.Background(), patience, fn); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, j *Journal, rs ...*attachment.Record) {
	t.Helper()
	update(t, j, func(tx *Tx) error {
		for _, r := range rs {
			if err := tx.Put(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// at is a moment of boot "b1".
func at(seconds int) attachment.Moment {
	d := time.Duration(seconds) * time.Second
	return attachment.Moment{BootID: "b1", BootTime: d, Wall: time.Unix(1700000000, 0).UTC().Add(d)}
}

func key(id string) attachment.Key {
	return attachment.Key{Network: "net", ContainerID: id, IfName: "eth0"}
}

// rec is an attached record with a veth and an address of its own.
func rec(id, ip, veth string, index int) *attachment.Record {
	return &attachment.Record{
		Key: key(id), State: attachment.Attached, Node: attachment.Node{Now: at(0)}, Due: at(600),
		IPs:       []netip.Addr{netip.MustParseAddr(ip)},
		Resources: []attachment.Resource{ownLink(veth, index)},
	}
}

func ownLink(name string, index int) attachment.Resource {
	return attachment.Resource{Kind: attachment.KindLink, Share: attachment.Own, Link: &attachment.Link{Index: index, Name: name, Kind: "veth"}}
}

// ids are the container ids of keys.
func ids(keys []attachment.Key, err error) ([]string, error) {
	out := []string{}
	for _, k := range keys {
		out = append(out, k.ContainerID)
	}
	return out, err
}

// want fails unless a reading gave exactly these.
func want[T any](t *testing.T, what string, wanted []T) func([]T, error) {
	t.Helper()
	return func(got []T, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if len(got)+len(wanted) > 0 && !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s: got %v, want %v", what, got, wanted)
		}
	}
}

// contents is everything in the file but the bookkeeping of bbolt: bucket, key,
// value.
func contents(t *testing.T, j *Journal, buckets ...[]byte) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	view(t, j, func(tx *Tx) error {
		for _, b := range buckets {
			m := map[string]string{}
			if tx.bucket(b) == nil {
				return errors.New("no bucket " + string(b))
			}
			_ = tx.bucket(b).ForEach(func(k, v []byte) error { m[string(k)] = string(v); return nil })
			out[string(b)] = m
		}
		return nil
	})
	return out
}
