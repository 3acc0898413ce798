package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepareDir makes the journal's directory (0700) and refuses one that others
// could have put there: a symlink, or one that another user may write.
func prepareDir(dir string) error {
	fi, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
			return fmt.Errorf("make parent of journal directory: %w", err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make journal directory: %w", err)
		}
		if err := syncDir(filepath.Dir(dir)); err != nil {
			return err
		}
		fi, err = os.Lstat(dir)
		if err != nil {
			return fmt.Errorf("look at journal directory: %w", err)
		}
	} else if err != nil {
		return fmt.Errorf("look at journal directory: %w", err)
	}
	return checkDir(dir, fi)
}

func checkDir(dir string, fi fs.FileInfo) error {
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a symlink: %w", dir, ErrUnsafe)
	case !fi.IsDir():
		return fmt.Errorf("%s is not a directory: %w", dir, ErrUnsafe)
	case fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s may be written by others (mode %o), chmod 0700 it: %w", dir, fi.Mode().Perm(), ErrUnsafe)
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, who may put anything there: %w", dir, st.Uid, ErrUnsafe)
	}
	return nil
}

// openNoFollow opens a regular file and no symlink to one. The descriptor is
// blocking, so that os.File leaves the runtime's poller alone, which a short-lived process pays for.
func openNoFollow(path string, flag int, mode os.FileMode) (*os.File, error) {
	// O_NONBLOCK for the open alone: what lies there may be a fifo.
	fd, err := unix.Open(path, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, uint32(mode.Perm()))
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s is a symlink: %w", path, ErrUnsafe)
	case errors.Is(err, unix.EISDIR):
		return nil, fmt.Errorf("%s is a directory: %w", path, ErrUnsafe)
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, fmt.Errorf("%s is not a regular file: %w", path, errors.Join(ErrUnsafe, err))
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set up %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open directory to sync it: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// syncUp syncs a directory and those that it is in, which may be new as well. Only the first is the journal's own.
func syncUp(dir string) error {
	if err := syncDir(dir); err != nil {
		return err
	}
	for dir != "/" && dir != "." {
		dir = filepath.Dir(dir)
		_ = syncDir(dir) // what cannot be opened was not made here
	}
	return nil
}

// Writable says why an ADD could not be recorded, without lock and without
// writing anything.
func (j *Journal) Writable() error {
	dir, fi, err := existing(filepath.Dir(j.path))
	if err != nil {
		return err
	}
	if dir == filepath.Dir(j.path) {
		if err := checkDir(dir, fi); err != nil {
			return err
		}
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return &fs.PathError{Op: "write to", Path: dir, Err: err}
	}
	for _, path := range []string{j.path, j.path + lockSuffix} {
		fi, err := os.Lstat(path)
		switch {
		case err != nil:
			continue
		case !fi.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file: %w", path, ErrUnsafe)
		}
		if err := unix.Access(path, unix.W_OK); err != nil { // an immutable one
			return &fs.PathError{Op: "write to", Path: path, Err: err}
		}
	}
	return nil
}

// existing goes up to a directory that is there: Lock would make what is missing.
func existing(dir string) (string, fs.FileInfo, error) {
	fi, err := os.Lstat(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != "/" {
		dir = filepath.Dir(dir)
		fi, err = os.Stat(dir)
	}
	if err != nil {
		return "", nil, fmt.Errorf("look at journal directory: %w", err)
	}
	return dir, fi, nil
}
