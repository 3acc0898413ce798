package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// firstRoom is what bbolt needs to begin a file and to write the first record, in bytes.
const firstRoom = 64 << 10

// Ready says why an ADD could not be recorded now. Nothing is written. An existing journal is read under its lock, as
// by any reader; one whose lock is not had within wait is in use, and so taken to be sound.
func (j *Journal) Ready(ctx context.Context, wait time.Duration) error {
	if err := j.Writable(); err != nil {
		return err
	}
	if !j.Exists() {
		return j.room()
	}
	err := j.ViewWithin(ctx, wait, func(*Tx) error { return nil })
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrDamaged) {
		return nil // a damaged one is put aside by the ADD
	}
	return err
}

// room says whether the file system has place for a new journal. An existing one has its own: pages that are free in
// it, and blocks ahead.
func (j *Journal) room() error {
	dir, _, err := existing(filepath.Dir(j.path))
	if err != nil {
		return err
	}
	var st unix.Statfs_t
	switch err := unix.Statfs(dir, &st); {
	case err != nil:
		return fmt.Errorf("statfs %s: %w", dir, err)
	case st.Bfree*uint64(st.Bsize) < firstRoom && st.Blocks > 0:
		return fmt.Errorf("%s: %w", dir, unix.ENOSPC)
	case st.Ffree == 0 && st.Files > 0:
		return fmt.Errorf("%s has no inode left: %w", dir, unix.ENOSPC)
	}
	return nil
}
