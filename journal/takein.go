package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"golang.org/x/sys/unix"
)

// spoolLimit bounds the records that one transaction takes in.
const spoolLimit = 512

var keyTaken = []byte("taken")

// ErrLater is what a taker answers for a record that its own process, which waits for the lock, has to place.
var ErrLater = errors.New("left to the process that waits")

// TakeIn gives the spooled records to place, in the order in which they came; what place puts is committed with the
// rest of the transaction, and then their entries go. waits tells whether the record's process is still there. An entry
// that cannot be read, or placed, is set aside and reported; it does not stop the others. Half of one goes: its process
// was killed, or the power was cut, before anybody was told that it is stored.
func (t *Tx) TakeIn(place func(r *attachment.Record, waits bool) error) error {
	entries, parts, err := t.waiting()
	removeParts(parts)
	if len(entries) == 0 {
		return err
	}
	meta := t.tx.Bucket(bucketMeta)
	before := strings.Fields(string(meta.Get(keyTaken)))
	errs := []error{err}
	var taken, kept []string // paths, and names of those that could not be removed
	for _, path := range entries {
		name := filepath.Base(path)
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
		case errors.Is(err, errHalf):
			errs = append(errs, fmt.Errorf("spool entry %s: %w, removed", path, err), os.Remove(path))
		case err != nil:
			errs = append(errs, fmt.Errorf("spool entry %s: %w", path, err), os.Rename(path, path+badSuffix))
		default:
			taken = append(taken, path)
		}
	}
	if len(taken) > 0 || len(before) > 0 {
		// Whoever is killed between commit and removal must not have it taken in again, after a DEL perhaps.
		for _, path := range taken {
			kept = append(kept, filepath.Base(path))
		}
		if err := meta.Put(keyTaken, []byte(strings.Join(kept, "\n"))); err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
	crash.At("takein.placed")
	t.tx.OnCommit(func() {
		crash.At("takein.committed")
		for _, path := range taken {
			_ = os.Remove(path) // else the next one does, by keyTaken
			crash.At("takein.removed")
		}
	})
	return errors.Join(errs...)
}

// SpoolEmpty reports whether nothing waits to be taken in.
func (j *Journal) SpoolEmpty() bool {
	entries, _, err := (&Tx{spools: j.spoolDirs()}).waiting()
	return err == nil && len(entries) == 0
}

// Waiting calls fn for each record that waits to be taken in, oldest first, with its file. Those that cannot be read do
// not stop it; their errors are joined in the result. Half of one is none: a power cut leaves it, and it goes with the next change.
func (j *Journal) Waiting(fn func(r *attachment.Record, file string)) error {
	entries, _, err := (&Tx{spools: j.spoolDirs()}).waiting()
	errs := []error{err}
	for _, path := range entries {
		err := takeOne(path, func(r *attachment.Record, _ bool) error { fn(r, path); return nil })
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errHalf) {
			errs = append(errs, fmt.Errorf("spool entry %s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

// waiting gives the entries of all spools, oldest first, and those that are being written. A spool that others can write
// is an error, and read by nobody.
func (t *Tx) waiting() (paths, parts []string, err error) {
	for _, dir := range t.spools {
		names, begun, rerr := readNames(dir)
		if len(names)+len(begun) > 0 {
			rerr = errors.Join(rerr, safeSpool(dir))
		}
		if rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		for _, n := range names {
			paths = append(paths, filepath.Join(dir, n))
		}
		for _, n := range begun {
			parts = append(parts, filepath.Join(dir, n))
		}
	}
	// Their names begin with the time.
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return paths, parts, err
}

// errHalf says that an entry was never written to its end.
var errHalf = errors.New("half a record")

// half tells what was cut off, or what the file system gave no blocks to before a power cut, from what somebody spoilt.
func half(b []byte) bool {
	var raw json.RawMessage
	var syntax *json.SyntaxError
	err := json.Unmarshal(b, &raw)
	return bytes.IndexByte(b, 0) >= 0 || errors.As(err, &syntax) && syntax.Offset == int64(len(b))
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
	waits := errors.Is(flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
	r, err := attachment.Decode(b)
	if err == nil {
		err = place(r, waits)
	} else if half(b) {
		err = errHalf
	}
	if err != nil && waits {
		return ErrLater // an entry that goes means to its process that it is stored
	}
	return err
}

// readNames gives the entries of a spool, oldest first, and those that are being written; one that was never made is empty.
func readNames(dir string) (names, parts []string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read spool: %w", err)
	}
	for _, f := range files {
		switch {
		case strings.HasSuffix(f.Name(), entrySuffix):
			names = append(names, f.Name())
		case strings.HasSuffix(f.Name(), entrySuffix+partSuffix):
			parts = append(parts, f.Name())
		}
	}
	return names, parts, nil
}
