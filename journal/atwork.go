package journal

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// The lock file says whether its holder has the journal open, and, of a journal that nobody has open, which file it was:
// boot, inode, size and time of the last change. Whoever finds it open took the lock from a process that died at it: killed, as a
// cancelled plugin is, or over pages that bbolt could not walk. Whoever finds another file than the one that is said
// has one that was changed by somebody else or, in another boot, comes from the disk anew. Then its pages are walked
// before bbolt sees them, which would otherwise follow a wrong number for minutes, or until the process ends; a walk for each call
// would cost more with each record.
const (
	working = '1'
	idle    = '0'
	// atWorkSize is how long the text is, with spaces at its end.
	atWorkSize = 128
)

// seen is what the lock file says of a file that nobody has open.
func seen(fi fs.FileInfo) string {
	st, ok := fi.Sys().(*syscall.Stat_t)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if !ok || err != nil {
		return ""
	}
	return fmt.Sprintf("%c %s %d %d %d", idle, strings.TrimSpace(string(boot)), st.Ino, st.Size, fi.ModTime().UnixNano())
}

// known walks the pages of a file that is not the one that was there last.
func (s *Session) known() error {
	fi, err := os.Lstat(s.j.path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() == 0 {
		return nil // opening it says why not
	}
	b := make([]byte, atWorkSize)
	n, _ := s.lock.ReadAt(b, 0)
	said := strings.TrimSpace(string(b[:n]))
	if said != "" && said == seen(fi) {
		return nil
	}
	if err := checkPages(s.j.path); err != nil {
		if said != "" && said[0] == working {
			err = fmt.Errorf("the last one at work on it died, and: %w", err)
		}
		return fmt.Errorf("%s: %w: %w", s.j.path, ErrDamaged, err)
	}
	return nil
}

// mark is for processes that die, not for power loss, and is not waited for. Where it cannot be written (read-only) there
// is none.
func (s *Session) mark() { s.marked = s.say(string(working)) == nil }

// unmark says that nobody is at work, if mark said otherwise, and which file is there; sound is false for one that is not to be
// trusted again without a look.
func (s *Session) unmark(sound bool) {
	if !s.marked {
		return
	}
	s.marked = false
	text := string(idle)
	if fi, err := os.Lstat(s.j.path); err == nil && sound {
		text = seen(fi)
	}
	_ = s.say(text)
}

func (s *Session) say(text string) error {
	_, err := s.lock.WriteAt(fmt.Appendf(nil, "%-*s\n", atWorkSize-1, text), 0)
	return err
}
