package journal

import (
	"errors"
	"fmt"
	"os"

	"github.com/backstop-cni/backstop/internal/crash"
	bolt "go.etcd.io/bbolt"
)

// newSuffix ends the name of a file that is to be the journal: each is made whole beside it and then renamed. What a
// killed process left under that name was never the journal, and goes with the next change.
const newSuffix = ".new"

// begin puts a journal without anything in it into its place. Whoever is killed here leaves none, or a whole one.
func (s *Session) begin() error {
	tmp := s.j.path + newSuffix
	crash.At("begin.before")
	if err := s.with(tmp, false, func(*bolt.DB) error { return nil }); err != nil {
		return errors.Join(fmt.Errorf("begin journal: %w", err), removeIfThere(tmp))
	}
	crash.At("begin.written")
	if err := os.Rename(tmp, s.j.path); err != nil {
		return errors.Join(fmt.Errorf("begin journal: %w", err), removeIfThere(tmp))
	}
	crash.At("begin.renamed")
	return nil // the first change syncs the name
}
