package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/backstop-cni/backstop/attachment"
	bolt "go.etcd.io/bbolt"
)

// SchemaVersion is the version of the file's layout.
const SchemaVersion = 1

var (
	bucketMeta        = []byte("meta")
	bucketAttachments = []byte("attachments")
	bucketByIP        = []byte("by-ip")
	bucketByLink      = []byte("by-link")
	bucketDue         = []byte("due")
	bucketHistory     = []byte("history")

	allBuckets = [][]byte{bucketMeta, bucketAttachments, bucketByIP, bucketByLink, bucketDue, bucketHistory}

	keySchema = []byte("schema")
	keyBoot   = []byte("boot")
)

// Tx is a transaction on the journal. Its zero value reads as an empty journal.
type Tx struct {
	tx     *bolt.Tx
	spools []string // the directories
}

func (t *Tx) bucket(name []byte) *bolt.Bucket {
	if t.tx == nil {
		return nil
	}
	return t.tx.Bucket(name)
}

// keyMoved marks a file that came into its place by a rename(2).
var keyMoved = []byte("moved")

// prepare makes the buckets of a new file. Of one that has just come into its place it makes that sure: else a power cut
// could take the name back, and with it what is acknowledged from now on.
func (t *Tx) prepare(dir string) error {
	if err := t.checkSchema(); err != nil {
		return err
	}
	if meta := t.bucket(bucketMeta); meta != nil {
		if meta.Get(keyMoved) == nil {
			return nil
		}
		return errors.Join(syncDir(dir), meta.Delete(keyMoved))
	}
	if err := syncUp(dir); err != nil {
		return err
	}
	return t.makeBuckets()
}

func (t *Tx) makeBuckets() error {
	for _, b := range allBuckets {
		if _, err := t.tx.CreateBucketIfNotExists(b); err != nil {
			return fmt.Errorf("make bucket %s: %w", b, err)
		}
	}
	return t.tx.Bucket(bucketMeta).Put(keySchema, binary.BigEndian.AppendUint32(nil, SchemaVersion))
}

// checkSchema says why the file may not be read as a journal.
func (t *Tx) checkSchema() error {
	if err := t.schema(); err != nil {
		return fmt.Errorf("%s: %w", t.tx.DB().Path(), err)
	}
	return nil
}

func (t *Tx) schema() error {
	b := t.bucket(bucketMeta)
	if b == nil {
		return t.whose()
	}
	v := b.Get(keySchema)
	if len(v) != 4 {
		return fmt.Errorf("schema version has %d bytes, want 4: %w", len(v), ErrDamaged)
	}
	if n := binary.BigEndian.Uint32(v); n > maxSchema {
		return fmt.Errorf("schema version %#x: %w", n, ErrDamaged)
	} else if n > SchemaVersion {
		return fmt.Errorf("schema version %d, this backstop knows up to %d: %w", n, SchemaVersion, ErrNewer)
	}
	for _, name := range allBuckets {
		if t.bucket(name) == nil {
			return fmt.Errorf("bucket %s is missing: %w", name, ErrDamaged)
		}
	}
	return nil
}

// maxSchema is what a later backstop may have written; a greater number is a spoilt one.
const maxSchema = 0xFF

// whose tells what a file without the bucket meta is: just begun, ours with that name spoilt, or another program's.
func (t *Tx) whose() error {
	ours := 0
	for _, name := range allBuckets {
		if t.bucket(name) != nil {
			ours++
		}
	}
	k, _ := t.tx.Cursor().First()
	switch {
	case k == nil:
		return nil
	case ours > len(allBuckets)/2:
		return fmt.Errorf("bucket %s is missing: %w", bucketMeta, ErrDamaged)
	}
	if err := checkPages(t.tx.DB().Path()); err != nil { // a name that no program gave
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fmt.Errorf("file has bucket %q and no schema version: %w", k, ErrForeign)
}

// Get reads a record; nil when there is none.
func (t *Tx) Get(k attachment.Key) (*attachment.Record, error) {
	b := t.bucket(bucketAttachments)
	if b == nil {
		return nil, nil
	}
	v := b.Get([]byte(k.String()))
	if v == nil {
		return nil, nil
	}
	return attachment.Decode(v)
}

// Put stores an open record and its index entries in place of what was there.
func (t *Tx) Put(r *attachment.Record) error {
	if r.State == attachment.Closed {
		return t.close(r)
	}
	if err := r.Valid(); err != nil {
		return err
	}
	r.Version = attachment.RecordVersion
	v, err := r.Encode()
	if err != nil {
		return err
	}
	old, _ := t.Get(r.Key) // see drop
	if err := t.reindex(old, r); err != nil {
		return err
	}
	if err := t.tx.Bucket(bucketAttachments).Put([]byte(r.Key.String()), v); err != nil {
		return fmt.Errorf("store record %s: %w", r.Key, err)
	}
	return nil
}

// drop removes a record and its index entries, if it is there.
func (t *Tx) drop(k attachment.Key) error {
	old, _ := t.Get(k) // what cannot be read cannot be unindexed: its entries go with the next rebuild
	if err := t.reindex(old, nil); err != nil {
		return err
	}
	return t.tx.Bucket(bucketAttachments).Delete([]byte(k.String()))
}

// Each calls fn for every open record in the order of their keys. Records that
// cannot be decoded do not stop it; their errors are joined in the result.
func (t *Tx) Each(fn func(*attachment.Record) error) error {
	b := t.bucket(bucketAttachments)
	if b == nil {
		return nil
	}
	var bad []error
	err := b.ForEach(func(k, v []byte) error {
		r, err := attachment.Decode(v)
		if err != nil {
			bad = append(bad, fmt.Errorf("entry %q: %w", k, err))
			return nil
		}
		return fn(r)
	})
	return errors.Join(append(bad, err)...)
}
