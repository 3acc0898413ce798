package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"golang.org/x/sys/unix"
)

// The spool is a directory beside the journal. A process that has to wait for the lock puts its record there, and
// whoever holds the lock takes it into the next transaction: one commit serves all who wait. A record whose process gave
// up waiting stays there, on disk, until somebody takes it in.
const (
	spoolSuffix = ".spool"
	// entrySuffix ends what may be taken in, badSuffix what could not be read.
	entrySuffix, badSuffix, partSuffix = ".json", ".bad", ".part"
)

// Spooled is a record that waits for somebody to take it in.
type Spooled struct {
	path string
	file *os.File // locked while the process that waits is there
}

func (j *Journal) spoolDir() string { return j.path + spoolSuffix }

// spoolIn writes a record where the lock's holder finds it. The disk is not waited for.
func spoolIn(dir string, r *attachment.Record) (_ *Spooled, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make spool: %w", err)
	}
	r.Version = attachment.RecordVersion
	b, err := r.Encode()
	if err != nil {
		return nil, err
	}
	p := &Spooled{path: filepath.Join(dir, fmt.Sprintf("%020d-%d%s", time.Now().UnixNano(), os.Getpid(), entrySuffix))}
	if p.file, err = beginPart(p.path + partSuffix); err != nil {
		return nil, fmt.Errorf("begin spool entry: %w", err)
	}
	crash.At("spool.begun")
	_, err = p.file.Write(b)
	crash.At("spool.written")
	if err == nil {
		err = os.Rename(p.path+partSuffix, p.path)
	}
	crash.At("spool.renamed")
	if err != nil {
		p.file.Close()
		return nil, errors.Join(fmt.Errorf("write spool entry %s: %w", p.path, err), os.Remove(p.path+partSuffix))
	}
	return p, nil
}

// Taken reports whether the record is in the journal, on disk: the entry goes after the commit.
func (p *Spooled) Taken() bool {
	_, err := os.Lstat(p.path)
	return errors.Is(err, fs.ErrNotExist)
}

// errTaken ends the wait of one whose record was taken in.
var errTaken = errors.New("the record was taken in")

// whenTaken gives what is closed when the entry has gone: all who wait for one commit go on at once then, and need not
// have the lock one after the other. Without inotify(7) it never is.
func (p *Spooled) whenTaken() <-chan struct{} {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	// The file is open here, so that its removal is a change of its link count.
	if _, err := unix.InotifyAddWatch(fd, p.path, unix.IN_ATTRIB); err != nil && !p.Taken() {
		unix.Close(fd)
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer unix.Close(fd)
		for b := make([]byte, 1024); !p.Taken(); {
			if _, err := unix.Read(fd, b); err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
		close(gone)
	}()
	return gone
}

// Drop takes the record back.
func (p *Spooled) Drop() error {
	defer p.file.Close()
	crash.At("spool.drop")
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove spool entry: %w", err)
	}
	return nil
}

// keep leaves the record on disk for whoever has the lock next.
func (p *Spooled) keep() error {
	defer p.file.Close()
	crash.At("spool.keep")
	if err := p.file.Sync(); err != nil {
		return fmt.Errorf("sync spool entry %s: %w", p.path, err)
	}
	crash.At("spool.synced")
	// The spool may have been made just now, and the directory that it is in.
	return syncUp(filepath.Dir(p.path))
}

// beginPart makes a file that is locked as long as this process is there: one that is not is what a killed process left.
func beginPart(path string) (*os.File, error) {
	for {
		f, err := openNoFollow(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		err = flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			err = unix.Fstat(int(f.Fd()), &st)
		}
		if err == nil && st.Nlink > 0 {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		} // else somebody took it for a dead one's before it was locked
	}
}

// removeParts removes the entries that killed processes had not finished.
func removeParts(paths []string) {
	for _, path := range paths {
		f, err := openNoFollow(path, os.O_RDONLY, 0)
		if err != nil {
			continue
		}
		if flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(path)
		}
		f.Close()
	}
}
