package journal

import (
	"errors"
	"fmt"
	"time"

	berrors "go.etcd.io/bbolt/errors"
)

// boltWait bounds bbolt's own lock. With the lock file held, only a foreign
// program (the bbolt command) can have it.
const boltWait = 2 * time.Second

// classify tells damage from trouble with the disk.
func classify(err error) error {
	for _, bad := range []error{berrors.ErrInvalid, berrors.ErrVersionMismatch, berrors.ErrChecksum, berrors.ErrInvalidMapping} {
		if errors.Is(err, bad) {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if errors.Is(err, berrors.ErrTimeout) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}
