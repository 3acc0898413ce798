package journal

import "errors"

var (
	// ErrBusy says that the lock was not had in time.
	ErrBusy = errors.New("journal is locked by another process")
	// ErrDamaged says that the file is not a sound journal.
	ErrDamaged = errors.New("journal is damaged")
	// ErrForeign says that the file is a database of another program.
	ErrForeign = errors.New("not a journal of backstop")
	// ErrUnsafe says that the path may not be used: a symlink, a directory, somebody else's.
	ErrUnsafe = errors.New("journal path is not safe to use")
	// ErrNewer says that a newer backstop wrote the file.
	ErrNewer = errors.New("journal was written by a newer backstop")
)
