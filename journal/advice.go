package journal

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Advice is what an operator does about a journal that gave this error, "" where the error says it all.
func Advice(err error) string {
	switch {
	case errors.Is(err, ErrDamaged):
		return "the next ADD or DEL that can write puts the file aside and begins a new journal; `backstopctl journal export` reads what is left of it"
	case errors.Is(err, ErrForeign):
		return `the file is left alone: move it away, or name another one in the conflist's key "journal"`
	case errors.Is(err, ErrNewer):
		return "the file is left alone: put the newer backstop back, or move the file away to begin a new journal"
	case errors.Is(err, ErrUnsafe):
		return "nothing was read or written there: remove what is in the way, or correct its owner and mode"
	case errors.Is(err, ErrBusy):
		return "see who holds it (fuser -v on the lock file), and end that if it is stuck"
	case errors.Is(err, unix.EROFS):
		return "mount it writable again"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "make room: df and df -i tell what is full"
	case refused(err):
		return "see whether it is immutable (lsattr), or a security module refuses it"
	}
	return ""
}

// refused tells a file that may not be written from what else the kernel does not permit.
func refused(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file) && (errors.Is(file, unix.EPERM) || errors.Is(file, unix.EACCES))
}
