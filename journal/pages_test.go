package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// used gives the pages of a kind that the journal is made of.
func used(t *testing.T, b []byte, flags uint16) (ats []int) {
	t.Helper()
	p := pages{b: b, seen: map[uint64]bool{}}
	p.walk()
	if len(p.errs) > 0 {
		t.Fatal(p.errs)
	}
	for at := 2 * page; at+page <= len(b); at += page {
		if p.seen[uint64(at/page)] && binary.NativeEndian.Uint16(b[at+8:]) == flags {
			ats = append(ats, at)
		}
	}
	if len(ats) == 0 {
		t.Fatalf("no page has the flags %#x", flags)
	}
	return ats
}

func TestASoundFilePassesTheWalk(t *testing.T) {
	j, _ := sound(t)
	if err := checkPages(j.Path()); err != nil {
		t.Error(err)
	}
}

// What ends a process that follows it is named by the walk, and by `journal check`.
func TestNumbersThatCannotBeFollowedAreNamed(t *testing.T) {
	set32 := func(b []byte, at int, v uint32) { binary.NativeEndian.PutUint32(b[at:], v) }
	set64 := func(b []byte, at int, v uint64) { binary.NativeEndian.PutUint64(b[at:], v) }
	for name, c := range map[string]struct {
		break_ func(t *testing.T, b []byte)
		want   string
	}{
		"a page that goes on for ever": {func(t *testing.T, b []byte) {
			for _, at := range used(t, b, flagLeaf) {
				set32(b, at+12, 1<<30)
			}
		}, "goes on for"},
		"a branch that is its own child": {func(t *testing.T, b []byte) {
			for _, at := range used(t, b, flagBranch) {
				set64(b, at+pageHeader+8, uint64(at/page))
			}
		}, "is used twice"},
		"a free page that is in use": {func(t *testing.T, b []byte) {
			meta := (&pages{b: b}).meta() // an older list may lie about, in a page that is free itself
			list, root := int(order.Uint64(meta[32:])), order.Uint64(meta[16:])
			binary.NativeEndian.PutUint16(b[list*page+10:], 1)
			set64(b, list*page+pageHeader, root)
		}, "used twice"},
		"an element outside of its page": {func(t *testing.T, b []byte) {
			for _, at := range used(t, b, flagLeaf) {
				set32(b, at+pageHeader+4, 1<<31)
			}
		}, "lies outside"},
		"a page that is another one": {func(t *testing.T, b []byte) {
			for _, at := range used(t, b, flagLeaf) {
				set64(b, at, 3)
			}
		}, "says that it is page 3"},
		"no meta page": {func(_ *testing.T, b []byte) { clear(b[:2*page]) }, "no meta page"},
		"half of it":   {func(_ *testing.T, b []byte) { clear(b[4*page:]) }, "says that it is page 0"},
	} {
		t.Run(name, func(t *testing.T) {
			j, good := sound(t)
			bad := bytes.Clone(good)
			c.break_(t, bad)
			if err := os.WriteFile(j.Path(), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := checkPages(j.Path()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A process that dies over the pages is the last one to do so: the next one checks them first.
func TestAHolderThatDiedHasTheFileChecked(t *testing.T) {
	j, good := sound(t)
	bad := bytes.Clone(good)
	for _, at := range used(t, good, flagBranch) { // bbolt would go round in it until the stack is full
		binary.NativeEndian.PutUint64(bad[at+pageHeader+8:], uint64(at/page))
	}
	lock := func(mark string) {
		t.Helper()
		for path, b := range map[string][]byte{j.Path(): bad, j.Path() + lockSuffix: []byte(mark)} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	lock("1")
	put := func() error {
		return j.UpdateWithin(context.Background(), patience, func(tx *Tx) error { return tx.Put(rec("c0", "10.0.0.0", "veth1", 12)) })
	}
	if err := put(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "used twice") {
		t.Errorf("got %v, want ErrDamaged with the page", err)
	}
	bad = good
	lock("1")
	if err := put(); err != nil {
		t.Errorf("killed over a sound file: %v", err)
	}
	if b, err := os.ReadFile(j.Path() + lockSuffix); err != nil || !strings.HasPrefix(string(b), "0 ") {
		t.Errorf("the mark is %q (%v) when nobody is at work", b, err)
	}
}

// The walk is for files that are not the one that was there last: it would cost each call more with each record. Whoever
// spoils one without a trace (size, time and inode the same) is not found by it.
func TestTheFileThatWasThereLastIsNotWalkedAgain(t *testing.T) {
	j, good := sound(t)
	put := func(n string) error {
		return j.UpdateWithin(context.Background(), patience, func(tx *Tx) error { return tx.Put(rec("c"+n, "10.0.0."+n, "veth"+n, 12)) })
	}
	if err := put("1"); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	spare := len(good) - page // a page that nobody uses: only a walk that is not made would tell
	for _, c := range []struct {
		trace bool
		want  error
	}{{false, nil}, {true, ErrDamaged}} {
		b, err := os.ReadFile(j.Path())
		if err != nil {
			t.Fatal(err)
		}
		meta := (&pages{b: b}).meta()
		list := int(order.Uint64(meta[32:])) // a list of free pages that names one that is not there
		binary.NativeEndian.PutUint64(b[list*page:], uint64(spare/page))
		if err := os.WriteFile(j.Path(), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if !c.trace {
			if err := os.Chtimes(j.Path(), fi.ModTime(), fi.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
		walked := j.ViewWithin(context.Background(), patience, func(*Tx) error { return nil })
		if !errors.Is(walked, c.want) {
			t.Errorf("changed with a trace (%v): got %v, want %v", c.trace, walked, c.want)
		}
	}
}

// Whatever the walk lets pass bbolt can check without dying; a walk never panics itself.
func TestWhatTheWalkLetsPassCanBeChecked(t *testing.T) {
	j, good := sound(t)
	const seed = 5
	rnd := rand.New(rand.NewPCG(seed, seed))
	passed, caught := 0, 0
	for range 300 {
		bad := bytes.Clone(good[:60*page])
		at := rnd.IntN(60) * page
		for range 1 + rnd.IntN(3) {
			bad[at+rnd.IntN(160)] ^= 1 << rnd.IntN(8)
		}
		if err := os.WriteFile(j.Path(), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if checkPages(j.Path()) != nil {
			caught++
			continue
		}
		passed++
		_ = j.ViewWithin(context.Background(), patience, func(tx *Tx) error {
			tx.Check()
			return errors.Join(tx.Each(func(*attachment.Record) error { return nil }))
		})
	}
	if passed == 0 || caught == 0 {
		t.Errorf("seed %d: %d passed, %d were caught", seed, passed, caught)
	}
}

// A page that goes on for billions of pages would be freed one by one: the change is refused at once, and nothing is written.
func TestAChangeDoesNotFreeBillionsOfPages(t *testing.T) {
	j, b := sound(t)
	for _, at := range used(t, b, flagLeaf) {
		binary.NativeEndian.PutUint32(b[at+12:], 0x81000000)
	}
	if err := os.WriteFile(j.Path(), b, 0o600); err != nil {
		t.Fatal(err)
	}
	err := j.UpdateWithin(context.Background(), patience, func(tx *Tx) error { return tx.Put(rec("late", "10.0.9.9", "v99", 99)) })
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "goes on for") {
		t.Errorf("got %v, want damage", err)
	}
	if after, err := os.ReadFile(j.Path()); err != nil || !bytes.Equal(after, b) {
		t.Errorf("the file was changed (%v)", err)
	}
}
