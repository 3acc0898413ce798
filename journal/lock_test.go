package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func lock(t *testing.T, j *Journal) *Session {
	t.Helper()
	s, err := j.LockWithin(context.Background(), patience)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLockGivesUpAtItsDeadline(t *testing.T) {
	j := newJournal(t)
	other := start(t, "hold", j)
	if got := other.line(t); got != "held" {
		t.Fatal(got)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("runtime went away"))
	nothing := func(*Tx) error { t.Error("it ran without the lock"); return nil }
	soon := 10 * time.Millisecond
	for name, wait := range map[string]func() error{
		"lock within":             func() error { _, err := j.LockWithin(context.Background(), soon); return err },
		"lock of the cancelled":   func() error { _, err := j.Lock(ctx); return err },
		"update":                  func() error { return j.UpdateWithin(context.Background(), soon, nothing) },
		"view":                    func() error { return j.ViewWithin(context.Background(), soon, nothing) },
		"update of the cancelled": func() error { return j.UpdateWithin(ctx, patience, nothing) },
	} {
		if err := wait(); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: got %v, want ErrBusy", name, err)
		}
	}
	if _, err := j.Lock(ctx); !errors.Is(err, context.Cause(ctx)) {
		t.Errorf("the cause is not in %v", err)
	}
	other.in.Close()
	lock(t, j).Unlock()
}

// asked is a context that tells when somebody begins to wait for its end.
type asked struct {
	context.Context
	first sync.Once
	began chan struct{}
}

func (a *asked) Done() <-chan struct{} {
	a.first.Do(func() { close(a.began) })
	return a.Context.Done()
}

func TestLockWaitsAsLongAsItsContext(t *testing.T) {
	j := newJournal(t)
	holder := lock(t, j)
	ctx := &asked{Context: context.Background(), began: make(chan struct{})}
	got := make(chan error)
	go func() {
		s, err := j.Lock(ctx)
		if err == nil {
			s.Unlock()
		}
		got <- err
	}()
	<-ctx.began
	holder.Unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// flock(2) cannot be called off: who lost may still win later, and must let go.
func TestALostWaiterDoesNotKeepTheLock(t *testing.T) {
	j := newJournal(t)
	holder := lock(t, j)
	for range 20 {
		if _, err := j.LockWithin(context.Background(), time.Millisecond); !errors.Is(err, ErrBusy) {
			t.Fatalf("got %v", err)
		}
	}
	holder.Unlock()
	for range 25 { // each of the lost may come first
		lock(t, j).Unlock()
	}
}

func TestTheLockOfAKilledProcessIsFree(t *testing.T) {
	j := newJournal(t)
	other := start(t, "hold", j)
	other.line(t)
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	lock(t, j).Unlock()
}

func TestUnlockTwice(t *testing.T) {
	j := newJournal(t)
	s := lock(t, j)
	s.Unlock()
	next := lock(t, j)
	s.Unlock() // must not take it from the next one
	if _, err := j.LockWithin(context.Background(), time.Millisecond); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	next.Unlock()
}

func TestExclusive(t *testing.T) {
	j := newJournal(t)
	done, err := j.Exclusive("replay")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Exclusive("replay"); !errors.Is(err, ErrBusy) {
		t.Errorf("a second one: %v, want ErrBusy", err)
	}
	if n := descriptors(t, j.Path()+".replay.lock"); n != 1 {
		t.Errorf("%d descriptors of the lock are open, want the holder's", n)
	}
	other, err := j.Exclusive("sweep")
	if err != nil {
		t.Errorf("work of another name: %v", err)
	} else {
		other()
	}
	lock(t, j).Unlock() // the journal itself stays free
	done()
	again, err := j.Exclusive("replay")
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	again()
	if _, err := os.Lstat(filepath.Dir(j.Path()) + "/journal.db.replay.lock"); err != nil {
		t.Error(err)
	}
}
