package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

// waiter asks for the journal's lock with a record.
type waiter struct {
	id  string
	s   *Session
	p   *Spooled
	err error
}

// spoolBehind has somebody wait with a record for a lock that is held, until its entry is there.
func spoolBehind(t *testing.T, j *Journal, r *attachment.Record, got chan<- waiter) {
	t.Helper()
	before := len(spooled(t, j))
	go func() {
		s, p, err := j.LockOrSpool(t.Context(), patience, r)
		got <- waiter{r.ContainerID, s, p, err}
	}()
	for end := time.Now().Add(patience); len(spooled(t, j)) == before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was spooled")
		}
	}
}

func spooled(t *testing.T, j *Journal) []string {
	t.Helper()
	names, _, err := readNames(j.path + spoolSuffix)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// takeIn takes in whatever is spooled, and puts it.
func takeIn(t *testing.T, s *Session) (keys []string, err error) {
	t.Helper()
	uerr := s.Update(func(tx *Tx) error {
		err = tx.TakeIn(func(r *attachment.Record, _ bool) error { keys = append(keys, r.ContainerID); return tx.Put(r) })
		return nil
	})
	if uerr != nil {
		t.Fatal(uerr)
	}
	return keys, err
}

func openIDs(t *testing.T, j *Journal) (ids []string) {
	t.Helper()
	view(t, j, func(tx *Tx) error {
		return tx.Each(func(r *attachment.Record) error { ids = append(ids, r.ContainerID); return nil })
	})
	return ids
}

// Who has to wait finds its record stored, with the holder's own commit. What the holder leaves is its own to store.
func TestAHolderStoresForThoseWhoWait(t *testing.T) {
	j := newJournal(t)
	s := lock(t, j)
	got := make(chan waiter)
	spoolBehind(t, j, rec("a", "10.0.0.1", "veth1", 1), got)
	spoolBehind(t, j, rec("b", "10.0.0.2", "veth2", 2), got)
	spoolBehind(t, j, rec("c", "10.0.0.3", "veth3", 3), got)
	err := s.Update(func(tx *Tx) error {
		return tx.TakeIn(func(r *attachment.Record, waits bool) error {
			if !waits {
				t.Errorf("%s is taken for gone", r.Key)
			}
			if r.ContainerID == "b" {
				return ErrLater
			}
			return tx.Put(r)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Unlock()
	for range 3 {
		w := <-got
		if w.err != nil || w.p == nil {
			t.Fatalf("%s: %v, %v", w.id, w.p, w.err)
		}
		if got, want := w.p.Taken(), w.id != "b"; got != want {
			t.Errorf("%s is taken in: %v, want %v", w.id, got, want)
		}
		if err := w.p.Drop(); err != nil {
			t.Error(err)
		}
		if w.s != nil {
			w.s.Unlock()
		} else if w.id == "b" {
			t.Error("b has neither the lock nor its record stored")
		}
	}
	if got := openIDs(t, j); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("in the journal: %v", got)
	}
	if got := spooled(t, j); len(got) > 0 {
		t.Errorf("still in the spool: %v", got)
	}
}

// Who need not wait spools nothing.
func TestAFreeLockNeedsNoSpool(t *testing.T) {
	j := newJournal(t)
	s, p, err := j.LockOrSpool(t.Context(), patience, rec("a", "10.0.0.1", "veth1", 1))
	if err != nil || p != nil {
		t.Fatal(p, err)
	}
	s.Unlock()
	if _, err := os.Stat(j.path + spoolSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a spool: %v", err)
	}
}

// A record whose process gave up waiting is stored by the next one that has the lock, once.
func TestAKeptRecordIsTakenInLater(t *testing.T) {
	j := newJournal(t)
	s := lock(t, j)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, p, err := j.LockOrSpool(ctx, patience, rec("a", "10.0.0.1", "veth1", 1))
	if !errors.Is(err, ErrBusy) || p == nil || p.Taken() {
		t.Fatal(p, err)
	}
	if err := p.keep(); err != nil {
		t.Fatal(err)
	}
	if j.Empty() {
		t.Error("the journal is empty, although a record waits in the spool")
	}
	waits := true
	if err := s.Update(func(tx *Tx) error {
		return tx.TakeIn(func(r *attachment.Record, w bool) error { waits = w; return tx.Put(r) })
	}); err != nil || waits {
		t.Errorf("%v, its process waits: %v", err, waits)
	}
	if keys, err := takeIn(t, s); len(keys) > 0 || err != nil {
		t.Errorf("taken in again: %v, %v", keys, err)
	}
	s.Unlock()
	if got := openIDs(t, j); !slices.Equal(got, []string{"a"}) {
		t.Errorf("in the journal: %v", got)
	}
}

// A holder that was killed between its commit and the removal of the entry leaves it there. After the DEL of that pod
// it must not come back.
func TestATakenRecordDoesNotComeBack(t *testing.T) {
	j := newJournal(t)
	s := lock(t, j)
	spoolBehind(t, j, rec("a", "10.0.0.1", "veth1", 1), make(chan waiter, 1))
	file := filepath.Join(j.path+spoolSuffix, spooled(t, j)[0])
	entry, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := takeIn(t, s); len(keys) != 1 || err != nil {
		t.Fatal(keys, err)
	}
	if err := os.WriteFile(file, entry, 0o600); err != nil {
		t.Fatal(err)
	}
	err = s.Update(func(tx *Tx) error {
		r, err := tx.Get(key("a"))
		if err != nil {
			return err
		}
		r.State = attachment.Closed
		return tx.Put(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if keys, err := takeIn(t, s); len(keys) > 0 || err != nil {
			t.Errorf("taken in again: %v, %v", keys, err)
		}
	}
	if got := spooled(t, j); len(got) > 0 {
		t.Errorf("still in the spool: %v", got)
	}
}

// One entry that cannot be read keeps no other from being stored, and is not looked at again. Half of one goes.
func TestABadSpoolEntryIsSetAside(t *testing.T) {
	j := newJournal(t)
	s := lock(t, j)
	spoolBehind(t, j, rec("a", "10.0.0.1", "veth1", 1), make(chan waiter, 1))
	dir := j.path + spoolSuffix
	whole, err := os.ReadFile(filepath.Join(dir, spooled(t, j)[0]))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"00-cut.json": string(whole[:len(whole)/2]), "01-none.json": "", "02-words.json": "no record", "03-zeros.json": string(whole[:9]) + "\x00\x00", "05-part.json.part": "{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "04-link.json")); err != nil {
		t.Fatal(err)
	}
	// Who only looks is told of what is spoilt, and not of what is none.
	var seen []string
	err = j.Waiting(func(r *attachment.Record, _ string) { seen = append(seen, r.ContainerID) })
	for name, told := range map[string]bool{"00-cut": false, "01-none": false, "02-words": true, "03-zeros": false, "04-link": true} {
		if err == nil || strings.Contains(err.Error(), name) != told {
			t.Errorf("a look should tell of %s: %v, it says %v", name, told, err)
		}
	}
	if !slices.Equal(seen, []string{"a"}) {
		t.Errorf("waiting: %v", seen)
	}
	keys, err := takeIn(t, s)
	if !slices.Equal(keys, []string{"a"}) {
		t.Errorf("taken in: %v", keys)
	}
	for _, name := range []string{"00-cut", "01-none", "02-words", "03-zeros", "04-link"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	if got, want := inDir(t, dir), []string{"02-words.json.bad", "04-link.json.bad"}; !slices.Equal(got, want) {
		t.Errorf("in the spool: %v, want %v", got, want)
	}
	if keys, err := takeIn(t, s); len(keys) > 0 || err != nil {
		t.Errorf("again: %v, %v", keys, err)
	}
}

func inDir(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// An entry that goes means to its process that its record is stored: one that cannot be placed stays with it.
func TestAnEntryThatCannotBePlacedStaysWithItsProcess(t *testing.T) {
	j := newJournal(t)
	s := lock(t, j)
	got := make(chan waiter, 1)
	spoolBehind(t, j, rec("a", "10.0.0.1", "veth1", 1), got)
	err := s.Update(func(tx *Tx) error {
		return tx.TakeIn(func(*attachment.Record, bool) error { return errors.New("no") })
	})
	if err != nil {
		t.Error(err)
	}
	s.Unlock()
	if w := <-got; w.s == nil || w.p == nil || w.p.Taken() {
		t.Errorf("the process has session %v, entry %v: %v", w.s, w.p, w.err)
	}
}

// The part that a live process is writing is its own.
func TestAPartThatIsBeingWrittenStays(t *testing.T) {
	j := newJournal(t)
	s := lock(t, j)
	if err := os.Mkdir(j.spoolDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := beginPart(filepath.Join(j.spoolDir(), "00-1.json.part"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if _, err := takeIn(t, s); err != nil {
			t.Error(err)
		}
		if got := inDir(t, j.spoolDir()); len(got) != want {
			t.Errorf("in the spool: %v, want %d", got, want)
		}
		f.Close()
	}
}
