package cli

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/backstop-cni/backstop/journal"
)

// whatToDo is what an operator does about a journal that cannot be used; "" where the error says it all.
func whatToDo(err error) string {
	switch {
	case errors.Is(err, journal.ErrDamaged):
		return "the next ADD or DEL puts the file aside and begins a new journal; `backstopctl journal export` reads what is left of it"
	case errors.Is(err, journal.ErrForeign):
		return "the file is left alone: move it away, or name another one in the conflist's key \"journal\"; pods start meanwhile and their records wait in the spool"
	case errors.Is(err, journal.ErrNewer):
		return "the file is left alone: put the newer backstop back, or move the file away to begin a new journal"
	case errors.Is(err, journal.ErrUnsafe):
		return "nothing was read or written there: remove what is in the way, or correct its owner and mode; pods start meanwhile and their records wait in the spool"
	case errors.Is(err, unix.EROFS):
		return "mount it writable again; pods start meanwhile and their records wait in " + journal.FallbackDir
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "make room: `backstopctl journal compact` needs as much as the records take; pods start meanwhile and their records wait in " + journal.FallbackDir
	}
	return ""
}
