package journal

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

// Due gives the keys of at most limit records whose time has come, the most
// overdue first.
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
		if !newBoot && (len(k) < 8 || time.Duration(binary.BigEndian.Uint64(k)) > now.BootTime) {
			break
		}
		key, err := attachment.ParseKey(string(k[8:]))
		if err != nil {
			return nil, err
		}
		out = append(out, key)
	}
	return out, nil
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
		if r.Due.BootID != now.BootID {
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
