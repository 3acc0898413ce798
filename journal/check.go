package journal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
)

// derived are the buckets that are derived from the records.
var derived = [][]byte{bucketByIP, bucketByLink, bucketDue}

// Check looks at everything: bbolt's pages, each record, and whether the indexes are what the records make them. It
// gives what is wrong; records that cannot be decoded are named by their keys.
func (t *Tx) Check() (wrong []error) {
	// bbolt's own check is not safe on pages that do not fit together.
	if err := checkPages(t.tx.DB().Path()); err != nil {
		return []error{fmt.Errorf("pages: %w", err)}
	}
	for err := range t.tx.Check() {
		// bbolt says so of what it panicked over and caught itself: nobody should take that for ours.
		wrong = append(wrong, fmt.Errorf("pages: %s", strings.TrimPrefix(err.Error(), "panic: ")))
	}
	want := map[string][]byte{}
	err := t.Each(func(r *attachment.Record) error {
		es, err := entries(r)
		for _, e := range es {
			want[string(e.bucket)+"\x00"+string(e.key)] = e.value
		}
		return err
	})
	wrong = append(wrong, unjoin(err)...)
	wrong = append(wrong, unjoin(t.History(func(*attachment.Record) error { return nil }))...)
	for _, name := range derived {
		b := t.bucket(name)
		if b == nil {
			continue // just begun: checkSchema refuses a file that lacks one
		}
		err := b.ForEach(func(k, v []byte) error {
			full := string(name) + "\x00" + string(k)
			value, ok := want[full]
			if !ok {
				wrong = append(wrong, fmt.Errorf("index %s has %q, which no record makes", name, k))
			} else if !bytes.Equal(value, v) {
				wrong = append(wrong, fmt.Errorf("index %s has an old claim at %q", name, k))
			}
			delete(want, full)
			return nil
		})
		if err != nil {
			wrong = append(wrong, fmt.Errorf("index %s: %w", name, err))
		}
	}
	for full := range want {
		wrong = append(wrong, fmt.Errorf("an index lacks %q", full))
	}
	return wrong
}

// unjoin gives the errors that errors.Join put together.
func unjoin(err error) []error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		return many.Unwrap()
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

// RebuildIndex makes the indexes anew from the records, and tells of how many.
func (t *Tx) RebuildIndex() (records int, err error) {
	for _, name := range derived {
		if err := t.tx.DeleteBucket(name); err != nil {
			return 0, fmt.Errorf("drop index %s: %w", name, err)
		}
		if _, err := t.tx.CreateBucket(name); err != nil {
			return 0, fmt.Errorf("make index %s: %w", name, err)
		}
	}
	var failed error
	bad := t.Each(func(r *attachment.Record) error {
		records++
		failed = errors.Join(failed, t.reindex(nil, r))
		return nil
	})
	if failed != nil {
		return 0, failed
	}
	return records, bad
}
