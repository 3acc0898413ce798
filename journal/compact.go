package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/backstop-cni/backstop/internal/crash"
	bolt "go.etcd.io/bbolt"
)

// compactTx bounds the bytes that one transaction of a compaction copies.
const compactTx = 1 << 20

// Compact writes the journal anew without its free pages, and puts the new file in the old one's place. It gives the
// sizes in bytes. A crash leaves the old one.
func (s *Session) Compact() (before, after int64, err error) {
	fi, err := os.Stat(s.j.path)
	if err != nil {
		return 0, 0, fmt.Errorf("look at journal: %w", err)
	}
	tmp := s.j.path + newSuffix
	if err := removeIfThere(tmp); err != nil {
		return 0, 0, fmt.Errorf("remove what a killed process left: %w", err)
	}
	err = s.with(s.j.path, true, func(src *bolt.DB) error {
		dst, err := bolt.Open(tmp, 0o600, &bolt.Options{NoSync: true, FreelistType: bolt.FreelistMapType})
		if err != nil {
			return fmt.Errorf("begin %s: %w", tmp, err)
		}
		crash.Soon("compact.copying")
		err = bolt.Compact(dst, src, compactTx)
		if err == nil {
			err = dst.Update(markMoved)
		}
		return errors.Join(err, dst.Sync(), dst.Close())
	})
	crash.At("compact.copied")
	if err == nil {
		err = os.Rename(tmp, s.j.path)
	}
	crash.At("compact.renamed")
	if err != nil {
		return 0, 0, errors.Join(fmt.Errorf("compact %s: %w", s.j.path, err), removeIfThere(tmp))
	}
	if err := syncDir(filepath.Dir(s.j.path)); err != nil {
		return 0, 0, err
	}
	now, err := os.Stat(s.j.path)
	if err != nil {
		return 0, 0, fmt.Errorf("look at journal: %w", err)
	}
	return fi.Size(), now.Size(), nil
}

// markMoved has the first change make sure of the file's name.
func markMoved(tx *bolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		return nil // nothing in it yet: then the first change does so anyway
	}
	return meta.Put(keyMoved, []byte{1})
}

func removeIfThere(path string) error {
	err := os.Remove(path)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if _, lerr := os.Lstat(path); errors.Is(lerr, os.ErrNotExist) { // a read-only file system refuses that, too
		return nil
	}
	return err
}
