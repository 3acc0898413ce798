package journal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// boltWait bounds bbolt's own lock. With the lock file held, only a foreign
// program (the bbolt command) can have it.
const boltWait = 2 * time.Second

// classify tells why bbolt could not open the file. What neither the kernel nor
// openNoFollow refused is damage: bbolt has no one error for that.
func classify(err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case errors.As(err, &errno), errors.Is(err, ErrUnsafe), errors.Is(err, ErrDamaged):
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// release lets go of a file that bbolt opened and then panicked over. The lock has
// to be given up by itself, since bbolt's mapping of the file lives on.
func release(f *os.File) {
	if f != nil {
		_ = flock(int(f.Fd()), unix.LOCK_UN)
		f.Close()
	}
}
