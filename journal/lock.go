package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/backstop-cni/backstop/internal/crash"
	"golang.org/x/sys/unix"
)

// lockSuffix makes the name of the lock file from the journal's.
const lockSuffix = ".lock"

// acquire takes the lock file exclusively, at the latest when ctx ends. It blocks
// in flock(2), which is fair and wakes at once; bbolt's own wait polls every 50 ms. The kernel drops the lock with the
// process, so nothing has to be cleaned up after a SIGKILL. A wait of zero is none but ctx's own; the timer is made
// only when there is something to wait for, since it starts the runtime's poller. Then waiting is called first, if it is not nil: the
// wait ends with errTaken when what it gives is closed.
func acquire(ctx context.Context, wait time.Duration, path string, waiting func() <-chan struct{}) (*os.File, error) {
	f, err := openNoFollow(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, unix.EROFS) { // what is there can still be read
		var rerr error
		if f, rerr = openNoFollow(path, os.O_RDONLY, 0); rerr == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	var taken <-chan struct{} // never, without one
	if waiting != nil {
		taken = waiting()
	}
	crash.At("lock.waiting")
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	got := make(chan error, 1)
	go func() { got <- flock(int(f.Fd()), unix.LOCK_EX) }()
	select {
	case err := <-got:
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return f, nil
	case <-taken:
		err = errTaken
	case <-ctx.Done():
		err = fmt.Errorf("lock %s: %w (%w)", path, ErrBusy, context.Cause(ctx))
	}
	// A wait that was given up may still win later: whoever gets the answer lets go of it.
	go func() { <-got; f.Close() }()
	return nil, err
}

func flock(fd, how int) error {
	for {
		err := unix.Flock(fd, how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Exclusive takes a lock beside the journal's, for work that is done by one
// process at a time and must not keep the journal itself. It does not wait (ErrBusy).
func (j *Journal) Exclusive(what string) (unlock func(), err error) {
	if err := prepareDir(filepath.Dir(j.path)); err != nil {
		return nil, err
	}
	f, err := openNoFollow(j.path+"."+what+lockSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another %s is at work on %s: %w", what, j.path, ErrBusy)
	}
	return func() { f.Close() }, nil
}
