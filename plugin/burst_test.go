package plugin

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/journal"
	"go.etcd.io/bbolt"
)

// Many pods start at once: all ADDs that wait for the journal are stored by one commit of the one that has it, and each
// is stored when its process returns.
func TestWaitingADDsShareACommit(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		const adds = 16
		dress(t)
		add := func(i int) (out, log string, ok bool) {
			conf := fmt.Sprintf(`{"cniVersion":"1.1.0","name":"n","type":"backstop","prevResult":{"cniVersion":"1.1.0","ips":[{"address":"10.7.0.%d/32"}]}}`, i)
			return invoke(t, "ADD", conf, fmt.Sprintf("CNI_CONTAINERID=burst%d", i))
		}
		if out, log, ok := add(200); !ok {
			t.Fatal(out, log)
		}
		j := journal.At(journal.DefaultPath)
		s, err := j.LockWithin(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		before := commits(t)
		var wg sync.WaitGroup
		for i := range adds {
			wg.Go(func() {
				if out, log, ok := add(i + 1); !ok || log != "" {
					t.Errorf("ADD %d: %s %s", i, out, log)
				}
			})
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if files, _ := os.ReadDir(journal.DefaultPath + ".spool"); len(files) == adds {
				break
			} else if time.Now().After(end) {
				t.Fatalf("%d of %d ADDs have spooled their records", len(files), adds)
			}
		}
		s.Unlock()
		wg.Wait()
		// The first one commits all the others; one more may have come between its own look and its entry.
		if n := commits(t) - before; n > 2 {
			t.Errorf("%d commits for %d ADDs that waited together", n, adds)
		}
		n := 0
		err = j.ViewWithin(t.Context(), time.Minute, func(tx *journal.Tx) error {
			return tx.Each(func(r *attachment.Record) error {
				n++
				if r.State != attachment.Attached || len(r.Events) != 1 {
					t.Errorf("%s is %s: %v", r.Key, r.State, r.Events)
				}
				return nil
			})
		})
		if err != nil || n != adds+1 {
			t.Errorf("%d records, want %d: %v", n, adds+1, err)
		}
	})
}

// commits counts the transactions that the journal has seen.
func commits(t *testing.T) int {
	t.Helper()
	db, err := bbolt.Open(journal.DefaultPath, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	return tx.ID()
}
