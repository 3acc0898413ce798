package journal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Whoever is killed while a journal is begun, or made anew, leaves at most a file beside it: that was never read.
func TestWhatAKilledProcessHadBegunGoes(t *testing.T) {
	j := newJournal(t)
	lock(t, j).Unlock()
	half := j.Path() + newSuffix
	for _, state := range []string{"no journal yet", "a journal"} {
		if err := os.WriteFile(half, make([]byte, page), 0o600); err != nil {
			t.Fatal(err)
		}
		put(t, j, rec(strings.ReplaceAll(state, " ", ""), "10.0.0.2", "veth1", 12))
		if _, err := os.Lstat(half); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %s is there: %v", state, half, err)
		}
	}
	if got := openIDs(t, j); len(got) != 2 {
		t.Errorf("in the journal: %v", got)
	}
}

// A journal that was just begun has nothing in it, and is sound.
func TestAJournalWithoutAnyChangeIsSound(t *testing.T) {
	j := newJournal(t)
	s := lock(t, j)
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	s.Unlock()
	view(t, j, func(tx *Tx) error {
		if wrong := tx.Check(); len(wrong) > 0 {
			t.Errorf("found: %v", wrong)
		}
		return nil
	})
}

// One that is killed while it puts a damaged journal aside leaves the damaged one in its place, and the next does it all.
func TestADamagedJournalStaysUntilTheNewOneIsWhole(t *testing.T) {
	j, _ := sound(t)
	bad := []byte("no journal")
	if err := os.WriteFile(j.Path(), bad, 0o600); err != nil {
		t.Fatal(err)
	}
	s := lock(t, j)
	defer s.Unlock()
	refused := errors.New("refused")
	now := time.Unix(1700000000, 0)
	if _, err := s.BeginAnew(now, func(*Tx) error { return refused }); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(j.Path()); err != nil || string(b) != string(bad) {
		t.Errorf("after a failure: %q, %v", b, err)
	}
	killed, err := s.putAside(now)
	if err != nil {
		t.Fatal(err)
	}
	aside, err := s.BeginAnew(now.Add(time.Hour), func(tx *Tx) error { return tx.Put(rec("a", "10.0.0.1", "veth1", 1)) })
	if err != nil || aside != killed {
		t.Errorf("put aside as %s and %s: %v", killed, aside, err)
	}
	if b, err := os.ReadFile(aside); err != nil || string(b) != string(bad) {
		t.Errorf("put aside: %q, %v", b, err)
	}
	if got := inDir(t, filepath.Dir(j.Path())); len(got) != 3 { // journal, lock, the damaged one
		t.Errorf("in the directory: %v", got)
	}
	moved := func() (there bool) {
		err := s.View(func(tx *Tx) error {
			there = tx.bucket(bucketMeta).Get(keyMoved) != nil
			r, err := tx.Get(key("a"))
			if r == nil {
				t.Error("its record is not there")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	if !moved() {
		t.Error("the next change will not make sure of the new file's name")
	}
	if err := s.Update(func(*Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if moved() {
		t.Error("every change syncs the directory")
	}
}
