package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	bolt "go.etcd.io/bbolt"
)

// entry is one key of an index bucket. Only by-ip has values, the record's claim;
// each index is small, since every one is another page of each commit.
type entry struct {
	bucket, key, value []byte
}

func (e entry) sameKey(o entry) bool {
	return &e.bucket[0] == &o.bucket[0] && bytes.Equal(e.key, o.key)
}

func (e entry) equal(o entry) bool { return e.sameKey(o) && bytes.Equal(e.value, o.value) }

// entries lists what the indexes hold of a record; nothing of none.
func entries(r *attachment.Record) ([]entry, error) {
	if r == nil {
		return nil, nil
	}
	claim, err := r.Claim().Encode()
	if err != nil {
		return nil, err
	}
	k := []byte(r.Key.String())
	var out []entry
	for _, ip := range r.Addresses() {
		out = append(out, entry{bucketByIP, append(ipPrefix(ip), k...), claim})
	}
	for _, l := range r.OwnLinks() {
		out = append(out, entry{bucketByLink, append(linkPrefix(l.Name, l.Index), k...), nil})
	}
	for _, name := range r.BareNames() {
		out = append(out, entry{bucketByLink, append(linkPrefix(name, 0), k...), nil})
	}
	if r.Due != (attachment.Moment{}) { // else no sweep has to see it at any time
		out = append(out, entry{bucketDue, dueKey(r.Due, r.Key), nil})
	}
	return out, nil
}

func ipPrefix(ip netip.Addr) []byte { return append([]byte(ip.String()), 0) }

// linkPrefix orders a name's devices by their index.
func linkPrefix(name string, index int) []byte {
	return binary.BigEndian.AppendUint32(append([]byte(name), 0), uint32(index))
}

// dueKey orders records by the boot time at which a sweep should see them.
func dueKey(at attachment.Moment, k attachment.Key) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(max(at.BootTime, 0))), k.String()...)
}

// reindex writes only what differs: a page that is not touched is not written.
func (t *Tx) reindex(old, r *attachment.Record) error {
	have, err := entries(old)
	if err != nil {
		return err
	}
	want, err := entries(r)
	if err != nil {
		return err
	}
	for _, e := range have {
		if !slices.ContainsFunc(want, e.sameKey) {
			if err := t.tx.Bucket(e.bucket).Delete(e.key); err != nil {
				return fmt.Errorf("remove %s from index: %w", old.Key, err)
			}
		}
	}
	for _, e := range want {
		if !slices.ContainsFunc(have, e.equal) {
			if err := t.tx.Bucket(e.bucket).Put(e.key, e.value); err != nil {
				return fmt.Errorf("index %s: %w", r.Key, err)
			}
		}
	}
	return nil
}

// scan walks an index from prefix on, as far as it goes; skip may name a further
// prefix to leave out in one step.
func (t *Tx) scan(bucket, prefix, skip []byte, fn func(k, v []byte) error) error {
	b := t.bucket(bucket)
	if b == nil {
		return nil
	}
	c := b.Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if skip != nil && bytes.HasPrefix(k, skip) {
			if k, v = c.Seek(after(skip)); !bytes.HasPrefix(k, prefix) {
				return nil
			}
		}
		if err := fn(k, v); err != nil {
			return err
		}
	}
	return nil
}

// after is the first key behind all that begin with prefix.
func after(prefix []byte) []byte {
	p := bytes.Clone(prefix)
	for i := len(p) - 1; i >= 0; i-- {
		if p[i]++; p[i] != 0 {
			return p[:i+1]
		}
	}
	return append(prefix, 0xff)
}

// ByIP gives the claims of every open record with this address.
func (t *Tx) ByIP(ip netip.Addr) (out []attachment.Claim, err error) {
	err = t.scan(bucketByIP, ipPrefix(ip), nil, func(k, v []byte) error {
		c, err := attachment.DecodeClaim(v)
		if err != nil {
			return fmt.Errorf("index entry %q: %w", k, err)
		}
		out = append(out, c)
		return nil
	})
	return out, err
}

// keys collects the attachments that an index names behind a prefix of n bytes.
func (t *Tx) keys(bucket, prefix, skip []byte, n int) (out []attachment.Key, err error) {
	err = t.scan(bucket, prefix, skip, func(k, _ []byte) error {
		key, err := attachment.ParseKey(string(k[min(n, len(k)):]))
		if err != nil {
			return fmt.Errorf("index entry %q: %w", k, err)
		}
		out = append(out, key)
		return nil
	})
	return out, err
}

// ByLink gives every open record whose own link is, or was, this very device.
func (t *Tx) ByLink(name string, index int) ([]attachment.Key, error) {
	p := linkPrefix(name, index)
	return t.keys(bucketByLink, p, nil, len(p))
}

// ByLinkName gives every open record with an own link of this name that is
// another device than the one with the given index, or with own rules for a link of this name.
func (t *Tx) ByLinkName(name string, but int) ([]attachment.Key, error) {
	skip := linkPrefix(name, but)
	return t.keys(bucketByLink, skip[:len(name)+1], skip, len(skip))
}

// ByContainer gives every record of this container and interface, in whatever
// network: the spec's key of an attachment, and what is left when a network was renamed. The records' own order
// serves for it: a look for each network there is, and no index to keep with each commit.
func (t *Tx) ByContainer(id, ifName string) (out []attachment.Key, err error) {
	b := t.bucket(bucketAttachments)
	if b == nil {
		return nil, nil
	}
	for _, network := range networks(b) {
		key := attachment.Key{Network: string(network), ContainerID: id, IfName: ifName}
		if b.Get([]byte(key.String())) != nil {
			out = append(out, key)
		}
	}
	return out, nil
}

// networks names those that have records, with a look for each.
func networks(records *bolt.Bucket) (out [][]byte) {
	c := records.Cursor()
	for k, _ := c.First(); k != nil; {
		network, _, _ := bytes.Cut(k, []byte("/"))
		out = append(out, bytes.Clone(network))
		k, _ = c.Seek(append(bytes.Clone(network), '/'+1)) // behind all of this network's
	}
	return out
}
