package plugin

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/journal"
	"golang.org/x/sys/unix"
)

const (
	noPrimary = `{"cniVersion":"1.1.0","name":"n","type":"backstop","primary":{"probe":["unix:///run/none.sock"]}`
	dressed   = noPrimary + `,"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"hv"},{"name":"eth0","sandbox":"/run/netns/p"}],"ips":[{"address":"10.9.9.9/32","interface":1}]}}`
	bare      = noPrimary + `}`
)

// DELs that are sent at once are one try of the primary: what it is at is not taken from it.
func TestDelsAtOnceDoNotEscalate(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		config := strings.Replace(dressed, "unix:///run/none.sock", "file:///proc/version", 1)
		dressWithRules(t)
		if out, log, ok := invoke(t, "ADD", config); !ok {
			t.Fatal(out, log)
		}
		before := view(t)
		s, err := journal.At(journal.DefaultPath).LockWithin(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		const dels = 6
		var wg sync.WaitGroup
		for range dels {
			wg.Go(func() {
				if out, log, ok := invoke(t, "DEL", config); !ok || out != "" || log != "" {
					t.Errorf("%v, stdout %q, stderr %q", ok, out, log)
				}
			})
		}
		waitFor(t, "DELs wait for the lock", dels, func() int {
			locks, err := os.ReadFile("/proc/locks")
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Count(locks, []byte("-> FLOCK"))
		})
		s.Unlock()
		wg.Wait()
		if diff := testnode.Diff(before, view(t)); diff != "" {
			t.Errorf("changed:\n%s", diff)
		}
		if r := recorded(t); r == nil || r.State != attachment.Deferred || r.Del.Count != 1 {
			t.Errorf("the record after %d DELs: %+v", dels, r)
		}
	})
}

// Runtimes must not call for one container in parallel, and do. Each call counts, one after the other; one of them does
// the work.
func TestDelsAtOnce(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		before := view(t)
		dressWithRules(t)
		if out, log, ok := invoke(t, "ADD", dressed); !ok {
			t.Fatal(out, log)
		}
		const dels = 8
		var wg sync.WaitGroup
		for i := range dels {
			wg.Go(func() {
				config := []string{dressed, bare}[i%2]
				if out, log, ok := invoke(t, "DEL", config); !ok || out != "" || log != "" {
					t.Errorf("a DEL among others: %v, stdout %q, stderr %q", ok, out, log)
				}
			})
		}
		wg.Wait()
		if diff := testnode.Diff(before, view(t)); diff != "" {
			t.Errorf("left:\n%s", diff)
		}
		if r := recorded(t); r == nil || r.State != attachment.Owed || r.Del.Count < 1 || r.Del.Count > dels || r.LastError != "" {
			t.Errorf("the record after %d DELs: %+v", dels, r)
		}
	})
}

// TestDelDuringAdd has both wait for the journal, the ADD with its look at the kernel behind it, and lets them go in
// either order. The primary is away: nothing of the pod is left, whoever was first, or it is whole and recorded.
func TestDelDuringAdd(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		del           string // its configuration
		again         bool   // the ADD is not the first one
	}{
		"ADD, DEL":                        {"ADD", "DEL", dressed, false},
		"DEL, ADD":                        {"DEL", "ADD", dressed, false},
		"ADD, DEL without a result":       {"ADD", "DEL", bare, false},
		"ADD again, DEL":                  {"ADD", "DEL", dressed, true},
		"DEL, ADD again":                  {"DEL", "ADD", dressed, true},
		"DEL without a result, ADD again": {"DEL", "ADD", bare, true},
		"DEL without a result, ADD":       {"DEL", "ADD", bare, false},
	} {
		t.Run(name, func(t *testing.T) {
			testnode.Run(t, func(t *testing.T) {
				clean := view(t)
				dressWithRules(t)
				full := view(t)
				if err := journal.At(journal.DefaultPath).UpdateWithin(t.Context(), time.Minute, func(*journal.Tx) error { return nil }); err != nil {
					t.Fatal(err)
				}
				if c.again {
					if out, log, ok := invoke(t, "ADD", dressed); !ok {
						t.Fatal(out, log)
					}
				}
				inOrder(t, c.first, c.second, map[string]string{"ADD": dressed, "DEL": c.del})

				// A DEL that has seen no record and no result has nothing to do, and may be through before the ADD's turn comes.
				now := view(t)
				if r := recorded(t); c.del == bare && !c.again && testnode.Diff(full, now) == "" {
					if r == nil || r.State != attachment.Attached || len(r.Resources) != 4 {
						t.Errorf("the pod is whole, its record is %+v", r)
					}
				} else if diff := testnode.Diff(clean, now); diff != "" {
					t.Errorf("left:\n%s", diff)
				}
				// Whatever came first, the next DEL finds the end.
				if out, log, ok := invoke(t, "DEL", dressed); !ok || out != "" || log != "" {
					t.Errorf("the DEL after it: %v, stdout %q, stderr %q", ok, out, log)
				}
				if diff := testnode.Diff(clean, view(t)); diff != "" {
					t.Errorf("left:\n%s", diff)
				}
				if r := recorded(t); r == nil || r.State != attachment.Owed {
					t.Errorf("the record at last: %+v", r)
				}
			})
		})
	}
}

// inOrder begins two calls while the journal is locked, and frees it when both wait: the kernel serves them in turn.
func inOrder(t *testing.T, first, second string, config map[string]string) {
	t.Helper()
	s, err := journal.At(journal.DefaultPath).LockWithin(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i, verb := range []string{first, second} {
		wg.Go(func() {
			if out, log, ok := invoke(t, verb, config[verb]); !ok || log != "" {
				t.Errorf("%s: stdout %q, stderr %q", verb, out, log)
			}
		})
		if err := testnode.Until(time.Minute, func() error { return waiting(i + 1) }); err != nil {
			t.Fatal(err)
		}
	}
	s.Unlock()
	wg.Wait()
}

// waiting wants so many waiters for the journal's lock, as the kernel lists them ("->" in proc(5)'s /proc/locks).
func waiting(want int) error {
	var lock unix.Stat_t
	if err := unix.Stat(journal.DefaultPath+".lock", &lock); err != nil {
		return err
	}
	list, err := os.ReadFile("/proc/locks")
	if err != nil {
		return err
	}
	got := 0
	for line := range bytes.Lines(list) {
		if bytes.Contains(line, []byte("->")) && bytes.Contains(line, fmt.Appendf(nil, ":%d ", lock.Ino)) {
			got++
		}
	}
	if got != want {
		return fmt.Errorf("%d wait for the journal, want %d", got, want)
	}
	return nil
}

// dressWithRules is dress with the rules of an AWS-style primary.
func dressWithRules(t *testing.T) {
	t.Helper()
	dress(t)
	ip(t, "rule add pref 512 to 10.9.9.9 lookup main")
	ip(t, "rule add pref 1536 from 10.9.9.9 lookup 100")
}

// recorded is the open record of the attachment that invoke calls for.
func recorded(t *testing.T) (r *attachment.Record) {
	t.Helper()
	err := journal.At(journal.DefaultPath).ViewWithin(t.Context(), time.Minute, func(tx *journal.Tx) (err error) {
		r, err = tx.Get(attachment.Key{Network: "n", ContainerID: "c1", IfName: "eth0"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// openRecords are those that can be decoded; the error names the others.
func openRecords(t *testing.T) (all []*attachment.Record, bad error) {
	t.Helper()
	err := journal.At(journal.DefaultPath).ViewWithin(t.Context(), time.Minute, func(tx *journal.Tx) error {
		bad = tx.Each(func(r *attachment.Record) error { all = append(all, r); return nil })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, bad
}

// waitFor asks until there are so many.
func waitFor(t *testing.T, what string, want int, count func() int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if n := count(); n >= want {
			return
		} else if time.Now().After(end) {
			t.Fatalf("%d of %d %s", n, want, what)
		}
	}
}

func view(t *testing.T) testnode.Snapshot {
	t.Helper()
	s, err := testnode.View{}.Take()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
