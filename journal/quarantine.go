package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/backstop-cni/backstop/internal/crash"
	bolt "go.etcd.io/bbolt"
)

// corruptInfix is between the journal's name and the time at which it was found damaged.
const corruptInfix = ".corrupt-"

// BeginAnew puts a new journal, with what fill puts into it, in the place of a damaged one, and tells where that is now.
// Nothing of it is lost: what can be read of it is read with `backstopctl journal export`. Until the new one is whole
// the damaged one stays where it is: whoever is killed here leaves the work to the next call. fill takes
// nothing from the spool, since its entries go before the file is in its place.
func (s *Session) BeginAnew(now time.Time, fill func(*Tx) error) (aside string, err error) {
	tmp := s.j.path + newSuffix
	if err := removeIfThere(tmp); err != nil {
		return "", fmt.Errorf("remove what a killed process left: %w", err)
	}
	err = s.with(tmp, false, func(db *bolt.DB) error {
		return db.Update(func(tx *bolt.Tx) error {
			t := &Tx{tx: tx}
			return errors.Join(t.makeBuckets(), markMoved(tx), fill(t))
		})
	})
	if err != nil {
		return "", errors.Join(fmt.Errorf("begin journal anew: %w", err), removeIfThere(tmp))
	}
	crash.At("quarantine.filled")
	if aside, err = s.putAside(now); err != nil {
		return "", errors.Join(err, removeIfThere(tmp))
	}
	crash.At("quarantine.aside")
	if err := os.Rename(tmp, s.j.path); err != nil {
		return "", fmt.Errorf("put new journal in its place: %w", err)
	}
	crash.At("quarantine.renamed")
	return aside, syncDir(filepath.Dir(s.j.path))
}

// putAside gives the damaged file a second name, unless one that was killed did so.
func (s *Session) putAside(now time.Time) (string, error) {
	is, err := os.Lstat(s.j.path)
	if err != nil {
		return "", fmt.Errorf("look at damaged journal: %w", err)
	}
	earlier, _ := filepath.Glob(s.j.path + corruptInfix + "*")
	for _, e := range earlier {
		if fi, err := os.Lstat(e); err == nil && os.SameFile(fi, is) {
			return e, nil
		}
	}
	to := s.j.path + corruptInfix + now.UTC().Format("20060102T150405.000000000")
	if err = os.Link(s.j.path, to); err != nil { // a file system without hard links
		err = os.Rename(s.j.path, to)
	}
	if err != nil {
		return "", fmt.Errorf("put damaged journal aside: %w", err)
	}
	return to, nil
}
