package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// corruptInfix is between the journal's name and the time at which it was found damaged.
const corruptInfix = ".corrupt-"

// Quarantine puts a damaged journal aside, so that a new one can be begun, and tells where. Nothing of it is lost: what
// can be read of it is read with `backstopctl journal export`.
func (s *Session) Quarantine(now time.Time) (string, error) {
	to := s.j.path + corruptInfix + now.UTC().Format("20060102T150405.000000000")
	if err := os.Rename(s.j.path, to); err != nil {
		return "", fmt.Errorf("put damaged journal aside: %w", err)
	}
	return to, syncDir(filepath.Dir(s.j.path))
}
