package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	bolt "go.etcd.io/bbolt"
)

// DefaultPath is where the plugin keeps its journal unless the conflist says
// otherwise.
const DefaultPath = "/var/lib/cni/backstop/journal.db"

// HistoryLimit is how many closed records are kept.
const HistoryLimit = 1000

// Journal names a journal; it holds nothing open.
type Journal struct{ path string }

// At names the journal in the given file, which need not exist.
func At(path string) *Journal { return &Journal{path: path} }

// Path is the journal's file.
func (j *Journal) Path() string { return j.path }

// Exists reports whether there is anything to read.
func (j *Journal) Exists() bool {
	_, err := os.Lstat(j.path)
	return err == nil
}

// Empty reports whether nothing was ever recorded: neither in the journal nor in its spool.
func (j *Journal) Empty() bool { return !j.Exists() && j.SpoolEmpty() }

// Session is the time during which one process has the journal to itself. Reading
// claims, removing and writing the outcome happen within one session.
type Session struct {
	j      *Journal
	lock   *os.File
	marked bool // see mark
}

// Lock waits for the journal until ctx ends (ErrBusy). The directory is made
// when it is missing.
func (j *Journal) Lock(ctx context.Context) (*Session, error) { return j.LockWithin(ctx, 0) }

// LockWithin is Lock with a wait of its own beside ctx's.
func (j *Journal) LockWithin(ctx context.Context, wait time.Duration) (*Session, error) {
	if err := prepareDir(filepath.Dir(j.path)); err != nil {
		return nil, err
	}
	crash.At("lock.wanted")
	f, err := acquire(ctx, wait, j.path+lockSuffix, nil)
	if err != nil {
		return nil, err
	}
	crash.At("lock.held")
	return &Session{j: j, lock: f}, nil
}

// LockOrSpool is LockWithin for one that has a record to store. Where it has to wait the record is spooled, so that
// whoever has the lock may take it in: Taken tells whether that was so, with a session, without one, or with ErrBusy.
func (j *Journal) LockOrSpool(ctx context.Context, wait time.Duration, r *attachment.Record) (*Session, *Spooled, error) {
	if err := prepareDir(filepath.Dir(j.path)); err != nil {
		return nil, nil, err
	}
	var p *Spooled
	var unspooled error
	f, err := acquire(ctx, wait, j.path+lockSuffix, func() <-chan struct{} {
		if p, unspooled = spoolIn(j.spoolDir(), r); p == nil {
			return nil // an own commit needs no spool
		}
		return p.whenTaken()
	})
	if errors.Is(err, errTaken) {
		return nil, p, nil
	}
	if err != nil {
		return nil, p, errors.Join(err, unspooled)
	}
	crash.At("spool.locked")
	return &Session{j: j, lock: f}, p, nil
}

// Unlock ends the session.
func (s *Session) Unlock() { s.lock.Close() }

// Update runs fn in one transaction that is on disk when Update returns nil.
func (s *Session) Update(fn func(*Tx) error) error {
	if err := removeIfThere(s.j.path + newSuffix); err != nil {
		return fmt.Errorf("remove what a killed process had begun: %w", err)
	}
	if !s.j.Exists() {
		if err := s.begin(); err != nil {
			return err
		}
	}
	return s.with(s.j.path, false, func(db *bolt.DB) error {
		return db.Update(func(tx *bolt.Tx) error {
			fill(s.j.path, tx.Size())
			t := &Tx{tx: tx, spools: s.j.spoolDirs()}
			if err := t.prepare(filepath.Dir(s.j.path)); err != nil {
				return err
			}
			if err := fn(t); err != nil {
				return err
			}
			crash.At("journal.commit")
			crash.Soon("journal.committing")
			tx.OnCommit(func() { crash.At("journal.committed") })
			return nil
		})
	})
}

// View runs fn in a read transaction. An absent journal reads as an empty one.
func (s *Session) View(fn func(*Tx) error) error {
	if !s.j.Exists() {
		return fn(&Tx{spools: s.j.spoolDirs()})
	}
	return s.with(s.j.path, true, func(db *bolt.DB) error {
		return db.View(func(tx *bolt.Tx) error {
			t := &Tx{tx: tx, spools: s.j.spoolDirs()}
			if err := t.checkSchema(); err != nil {
				return err
			}
			return fn(t)
		})
	})
}

// with opens a file, the journal or the one that is to be it, runs fn and closes it. Pages that do not fit together make
// bbolt panic, or fault on the mapped file: both are reported as ErrDamaged.
func (s *Session) with(path string, readOnly bool, fn func(*bolt.DB) error) (err error) {
	if path == s.j.path {
		if err := s.known(); err != nil {
			return err
		}
		defer func() { s.unmark(!errors.Is(err, ErrDamaged)) }()
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var file *os.File
	defer func() {
		if p := recover(); p != nil {
			release(file)
			err = fmt.Errorf("%s: %w: its pages cannot be followed (%v)", path, ErrDamaged, p)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		ReadOnly: readOnly, Timeout: boltWait, FreelistType: bolt.FreelistMapType, NoStatistics: true, InitialMmapSize: initialSize,
		OpenFile: func(path string, flag int, mode os.FileMode) (_ *os.File, err error) {
			file, err = openNoFollow(path, flag, mode)
			if err == nil && path == s.j.path {
				if err = notEmpty(file); err == nil {
					s.mark()
				}
			}
			return file, err
		},
	})
	if err != nil {
		return fmt.Errorf("open journal %s: %w", path, classify(err))
	}
	defer func() {
		if cerr := db.Close(); cerr != nil && err == nil {
			err = fmt.Errorf("close journal %s: %w", path, cerr)
		}
	}()
	return fn(db)
}

// notEmpty refuses what bbolt would begin in: a journal comes into its place whole, so this one lost what was in it.
func notEmpty(f *os.File) error {
	if fi, err := f.Stat(); err != nil || fi.Size() > 0 {
		return err
	}
	f.Close()
	return fmt.Errorf("the file is empty: %w", ErrDamaged)
}

// UpdateWithin locks, runs fn in one durable transaction and unlocks.
func (j *Journal) UpdateWithin(ctx context.Context, wait time.Duration, fn func(*Tx) error) error {
	s, err := j.LockWithin(ctx, wait)
	if err != nil {
		return err
	}
	defer s.Unlock()
	return s.Update(fn)
}

// ViewWithin locks, runs fn in a read transaction and unlocks. A journal whose
// directory does not exist is empty and stays absent.
func (j *Journal) ViewWithin(ctx context.Context, wait time.Duration, fn func(*Tx) error) error {
	if _, err := os.Lstat(filepath.Dir(j.path)); errors.Is(err, fs.ErrNotExist) {
		return fn(&Tx{spools: j.spoolDirs()})
	}
	s, err := j.LockWithin(ctx, wait)
	if err != nil {
		if !j.Exists() && !errors.Is(err, ErrUnsafe) && !errors.Is(err, ErrBusy) {
			return fn(&Tx{spools: j.spoolDirs()}) // the lock cannot be made, and nothing is there that it is for
		}
		return err
	}
	defer s.Unlock()
	return s.View(fn)
}
