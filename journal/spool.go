package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// spoolLimit bounds the records that one transaction takes in.
const spoolLimit = 128

var keyTaken = []byte("taken")

// Spooled is a record that waits for somebody to take it in.
type Spooled struct {
	path string
	file *os.File // locked while the process that waits is there
}

// spool writes a record where the lock's holder finds it. The disk is not waited for.
func (j *Journal) spool(r *attachment.Record) (_ *Spooled, err error) {
	dir := j.path + spoolSuffix
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

// ErrLater is what a taker answers for a record that its own process, which waits for the lock, has to place.
var ErrLater = errors.New("left to the process that waits")

// TakeIn gives the spooled records to place, in the order in which they came; what place puts is committed with the
// rest of the transaction, and then their entries go. waits tells whether the record's process is still there. An entry
// that cannot be read, or placed, is set aside and reported; it does not stop the others.
func (t *Tx) TakeIn(place func(r *attachment.Record, waits bool) error) error {
	if t.spool == "" {
		return nil
	}
	names, err := readNames(t.spool)
	if len(names) == 0 {
		return err
	}
	meta := t.tx.Bucket(bucketMeta)
	before := strings.Fields(string(meta.Get(keyTaken)))
	errs := []error{err}
	var taken, kept []string
	for _, name := range names {
		path := filepath.Join(t.spool, name)
		if slices.Contains(before, name) { // committed by one that was killed before it removed the entry
			if err := os.Remove(path); err != nil {
				errs, kept = append(errs, err), append(kept, name)
			}
			continue
		}
		if len(taken) == spoolLimit {
			break
		}
		switch err := takeOne(path, place); {
		case errors.Is(err, ErrLater), errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, fmt.Errorf("spool entry %s: %w", path, err), os.Rename(path, path+badSuffix))
		default:
			taken = append(taken, name)
		}
	}
	if len(taken) > 0 || len(before) > 0 {
		// Whoever is killed between commit and removal must not have it taken in again, after a DEL perhaps.
		if err := meta.Put(keyTaken, []byte(strings.Join(append(kept, taken...), "\n"))); err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
	t.tx.OnCommit(func() {
		for _, name := range taken {
			_ = os.Remove(filepath.Join(t.spool, name)) // else the next one does, by keyTaken
		}
	})
	return errors.Join(errs...)
}

// SpoolEmpty reports whether nothing waits to be taken in.
func (t *Tx) SpoolEmpty() bool {
	names, err := readNames(t.spool)
	return err == nil && len(names) == 0
}

func takeOne(path string, place func(r *attachment.Record, waits bool) error) error {
	f, err := openNoFollow(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	r, err := attachment.Decode(b)
	if err != nil {
		return err
	}
	waits := errors.Is(flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
	return place(r, waits)
}

// readNames gives the entries of a spool, oldest first; one that was never made is empty.
func readNames(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read spool: %w", err)
	}
	var names []string
	for _, f := range files {
		if strings.HasSuffix(f.Name(), entrySuffix) {
			names = append(names, f.Name())
		}
	}
	return names, nil
}
