package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/backstop-cni/backstop/attachment"
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
	if p.file, err = openNoFollow(p.path+partSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, fmt.Errorf("begin spool entry: %w", err)
	}
	err = flock(int(p.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		_, err = p.file.Write(b)
	}
	if err == nil {
		err = os.Rename(p.path+partSuffix, p.path)
	}
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
	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove spool entry: %w", err)
	}
	return nil
}

// keep leaves the record on disk for whoever has the lock next.
func (p *Spooled) keep() error {
	defer p.file.Close()
	if err := p.file.Sync(); err != nil {
		return fmt.Errorf("sync spool entry %s: %w", p.path, err)
	}
	return syncDir(filepath.Dir(p.path))
}
