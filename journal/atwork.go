package journal

import "fmt"

// A mark in the lock file says that its holder has the journal open. Whoever finds it there took the
// lock from a process that died at it: killed, as a cancelled plugin is, or over pages that bbolt could not walk. The
// file is checked then before bbolt sees it, so that damage ends one call and not each.
const (
	working = '1'
	idle    = '0'
)

// afterDeath checks the file if the mark is there.
func (s *Session) afterDeath() error {
	var b [1]byte
	if n, _ := s.lock.ReadAt(b[:], 0); n == 1 && b[0] == working && s.j.Exists() {
		if err := checkPages(s.j.path); err != nil {
			return fmt.Errorf("%s: %w: the last one at work on it died, and: %w", s.j.path, ErrDamaged, err)
		}
	}
	return nil
}

// mark is for processes that die, not for power loss, and is not waited for. Where it cannot be written (read-only) there
// is none.
func (s *Session) mark() {
	_, err := s.lock.WriteAt([]byte{working}, 0)
	s.marked = err == nil
}

// unmark says that nobody is at work, if mark said otherwise.
func (s *Session) unmark() {
	if s.marked {
		_, _ = s.lock.WriteAt([]byte{idle}, 0)
		s.marked = false
	}
}
