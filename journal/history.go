package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// close moves a record out of the open ones into the history.
func (t *Tx) close(r *attachment.Record) error {
	if err := t.drop(r.Key); err != nil {
		return err
	}
	return t.Remember(r)
}

// Remember adds a record to the history and drops the oldest beyond HistoryLimit.
// What only a replay needs is not kept: it may hold what users pass as arguments.
func (t *Tx) Remember(r *attachment.Record) error {
	h := t.tx.Bucket(bucketHistory)
	c := *r
	c.Version, c.Replay, c.CNIArgs, c.CNIPath, c.PrevResult, c.Pod = attachment.RecordVersion, nil, "", "", nil, nil
	v, err := c.Encode()
	if err != nil {
		return err
	}
	seq, err := h.NextSequence()
	if err != nil {
		return fmt.Errorf("number history entry: %w", err)
	}
	if err := h.Put(binary.BigEndian.AppendUint64(nil, seq), v); err != nil {
		return fmt.Errorf("add %s to history: %w", r.Key, err)
	}
	if first, _ := h.Cursor().First(); seq-binary.BigEndian.Uint64(first) >= HistoryLimit {
		return h.Delete(first)
	}
	return nil
}

// History calls fn for the closed records, the latest first.
func (t *Tx) History(fn func(*attachment.Record) error) error {
	b := t.bucket(bucketHistory)
	if b == nil {
		return nil
	}
	var bad []error
	c := b.Cursor()
	for k, v := c.Last(); k != nil; k, v = c.Prev() {
		r, err := attachment.Decode(v)
		if err != nil {
			bad = append(bad, fmt.Errorf("history entry %x: %w", k, err))
			continue
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return errors.Join(bad...)
}

// WasClosed reports whether the history has this container's interface, in whatever network, as closed, with one of the
// addresses or none: the container's id may have come again with another.
func (t *Tx) WasClosed(id, ifName string, ips []netip.Addr) bool {
	b := t.bucket(bucketHistory)
	if b == nil {
		return false
	}
	c := b.Cursor()
	for k, v := c.Last(); k != nil; k, v = c.Prev() {
		if !bytes.Contains(v, []byte(id)) {
			continue // decoding a thousand records takes as long as the rest of a DEL
		}
		// One that cannot be decoded says nothing.
		if r, err := attachment.Decode(v); err == nil && r.ContainerID == id && r.IfName == ifName && r.State == attachment.Closed &&
			(len(r.IPs) == 0 || slices.ContainsFunc(r.IPs, func(ip netip.Addr) bool { return slices.Contains(ips, ip) })) {
			return true
		}
	}
	return false
}

// ClosedSince reports whether the history has an attachment as closed whose ADD or last DEL was not before a moment.
func (t *Tx) ClosedSince(k attachment.Key, m attachment.Moment) bool {
	b := t.bucket(bucketHistory)
	if b == nil {
		return false
	}
	c := b.Cursor()
	for key, v := c.Last(); key != nil; key, v = c.Prev() {
		if !bytes.Contains(v, []byte(k.ContainerID)) {
			continue // see WasClosed
		}
		r, err := attachment.Decode(v)
		if err == nil && r.Key == k && r.State == attachment.Closed && (r.Node.Now.NotBefore(m) || r.Del != nil && r.Del.Last.NotBefore(m)) {
			return true
		}
	}
	return false
}
