package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

// Due gives the keys of at most limit records whose time has come, the most
// overdue first. An entry whose record is not there or cannot be decoded is passed over: nothing would ever
// move it, and a few of them would keep the sweep from all the others.
func (t *Tx) Due(now attachment.Moment, limit int) ([]attachment.Key, error) {
	b := t.bucket(bucketDue)
	if b == nil {
		return nil, nil
	}
	// After a reboot the boot clock begins anew: everything recorded before is due.
	newBoot := !bytes.Equal(t.bucket(bucketMeta).Get(keyBoot), []byte(now.BootID))
	var out []attachment.Key
	c := b.Cursor()
	for k, _ := c.First(); k != nil && len(out) < limit; k, _ = c.Next() {
		if len(k) < 8 {
			continue
		}
		if !newBoot && time.Duration(binary.BigEndian.Uint64(k)) > now.BootTime {
			break
		}
		key, err := attachment.ParseKey(string(k[8:]))
		if err != nil {
			continue
		}
		if r, err := t.Get(key); err == nil && r != nil {
			out = append(out, key)
		}
	}
	return out, nil
}

// Soonest gives the keys of at most limit records in the order in which a sweep
// will see them, whether or not their time has come.
func (t *Tx) Soonest(now attachment.Moment, limit int) ([]attachment.Key, error) {
	now.BootTime = 1<<63 - 1
	return t.Due(now, limit)
}

// Sample gives the key of one open record, from anywhere.
func (t *Tx) Sample() (attachment.Key, bool) {
	b := t.bucket(bucketAttachments)
	if b == nil {
		return attachment.Key{}, false
	}
	all := networks(b)
	if len(all) == 0 {
		return attachment.Key{}, false
	}
	prefix := append(all[rand.IntN(len(all))], '/')
	c := b.Cursor()
	// Container ids are hexadecimal as a rule; where they are not, some records are met more often.
	k, _ := c.Seek(fmt.Appendf(bytes.Clone(prefix), "%02x", rand.IntN(256)))
	if !bytes.HasPrefix(k, prefix) {
		k, _ = c.Seek(prefix)
	}
	key, err := attachment.ParseKey(string(k))
	return key, err == nil
}

// Some gives the keys of at most n open records, from anywhere on and round to it
// again.
func (t *Tx) Some(n int) (out []attachment.Key) {
	start, ok := t.Sample()
	if !ok {
		return nil
	}
	c := t.bucket(bucketAttachments).Cursor()
	k, _ := c.Seek([]byte(start.String()))
	for range n {
		if k == nil {
			k, _ = c.First()
		}
		key, err := attachment.ParseKey(string(k))
		if len(out) > 0 && key == out[0] {
			break
		}
		if err == nil {
			out = append(out, key)
		}
		k, _ = c.Next()
	}
	return out
}

// EnterBoot makes every record of an earlier boot due at once. It costs one look
// except in the first change after a boot.
func (t *Tx) EnterBoot(now attachment.Moment) error {
	meta := t.tx.Bucket(bucketMeta)
	if bytes.Equal(meta.Get(keyBoot), []byte(now.BootID)) {
		return nil
	}
	var stale []*attachment.Record
	// Records that cannot be decoded are left as they are: `backstopctl verify` names them.
	_ = t.Each(func(r *attachment.Record) error {
		unbound := r.Due == attachment.Moment{} && r.Node.Now.BootID == now.BootID
		if r.Due.BootID != now.BootID && !unbound {
			stale = append(stale, r)
		}
		return nil
	})
	for _, r := range stale {
		r.Due = attachment.Moment{BootID: now.BootID, Wall: now.Wall}
		if err := t.Put(r); err != nil {
			return err
		}
	}
	return meta.Put(keyBoot, []byte(now.BootID))
}
