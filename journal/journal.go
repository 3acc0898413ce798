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

// Exists reports whether there is anything to read. An empty file was begun by a
// process that was killed before it wrote the first page: nothing was ever acknowledged in it.
func (j *Journal) Exists() bool {
	fi, err := os.Lstat(j.path)
	return err == nil && (fi.Size() > 0 || !fi.Mode().IsRegular())
}

// Empty reports whether nothing was ever recorded: neither in the journal nor in its spool.
func (j *Journal) Empty() bool { return !j.Exists() && j.SpoolEmpty() }

// Session is the time during which one process has the journal to itself. Reading
// claims, removing and writing the outcome happen within one session.
type Session struct {
	j    *Journal
	lock *os.File
}

// Lock waits for the journal until ctx ends (ErrBusy). The directory is made
// when it is missing.
func (j *Journal) Lock(ctx context.Context) (*Session, error) { return j.LockWithin(ctx, 0) }

// LockWithin is Lock with a wait of its own beside ctx's.
func (j *Journal) LockWithin(ctx context.Context, wait time.Duration) (*Session, error) {
	if err := prepareDir(filepath.Dir(j.path)); err != nil {
		return nil, err
	}
	f, err := acquire(ctx, wait, j.path+lockSuffix, nil)
	if err != nil {
		return nil, err
	}
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
	return &Session{j: j, lock: f}, p, nil
}

// Unlock ends the session.
func (s *Session) Unlock() { s.lock.Close() }

// Update runs fn in one transaction that is on disk when Update returns nil.
func (s *Session) Update(fn func(*Tx) error) error {
	fresh := !s.j.Exists()
	err := s.with(false, func(db *bolt.DB) error {
		return db.Update(func(tx *bolt.Tx) error {
			fill(s.j.path, tx.Size())
			t := &Tx{tx: tx, spools: s.j.spoolDirs()}
			if err := t.prepare(); err != nil {
				return err
			}
			return fn(t)
		})
	})
	if err != nil {
		return err
	}
	if fresh {
		return syncDir(filepath.Dir(s.j.path))
	}
	return nil
}

// View runs fn in a read transaction. An absent journal reads as an empty one.
func (s *Session) View(fn func(*Tx) error) error {
	if !s.j.Exists() {
		return fn(&Tx{spools: s.j.spoolDirs()})
	}
	return s.with(true, func(db *bolt.DB) error {
		return db.View(func(tx *bolt.Tx) error {
			t := &Tx{tx: tx, spools: s.j.spoolDirs()}
			if err := t.checkSchema(); err != nil {
				return err
			}
			return fn(t)
		})
	})
}

// with opens the file, runs fn and closes it. Pages that do not fit together make
// bbolt panic, or fault on the mapped file: both are reported as ErrDamaged.
func (s *Session) with(readOnly bool, fn func(*bolt.DB) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var file *os.File
	defer func() {
		if p := recover(); p != nil {
			release(file)
			err = fmt.Errorf("%s: %w: %v", s.j.path, ErrDamaged, p)
		}
	}()
	db, err := bolt.Open(s.j.path, 0o600, &bolt.Options{
		ReadOnly: readOnly, Timeout: boltWait, FreelistType: bolt.FreelistMapType, NoStatistics: true, InitialMmapSize: initialSize,
		OpenFile: func(path string, flag int, mode os.FileMode) (_ *os.File, err error) {
			file, err = openNoFollow(path, flag, mode)
			return file, err
		},
	})
	if err != nil {
		return fmt.Errorf("open journal %s: %w", s.j.path, classify(err))
	}
	defer func() {
		if cerr := db.Close(); cerr != nil && err == nil {
			err = fmt.Errorf("close journal %s: %w", s.j.path, cerr)
		}
	}()
	return fn(db)
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
		return err
	}
	defer s.Unlock()
	return s.View(fn)
}
