package plugin

import (
	"fmt"
	"path/filepath"
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
		s, err := journal.At(journal.DefaultPath).LockWithin(t.Context(), time.Minute)
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
		waitFor(t, "ADDs have spooled their records", adds, func() int {
			entries, _ := filepath.Glob(journal.DefaultPath + ".spool/*.json")
			return len(entries)
		})
		s.Unlock()
		wg.Wait()
		// The first one commits all the others; one more may have come between its own look and its entry.
		if n := commits(t) - before; n > 2 {
			t.Errorf("%d commits for %d ADDs that waited together", n, adds)
		}
		all, err := openRecords(t)
		for _, r := range all {
			if r.State != attachment.Attached || len(r.Events) != 1 {
				t.Errorf("%s is %s: %v", r.Key, r.State, r.Events)
			}
		}
		if err != nil || len(all) != adds+1 {
			t.Errorf("%d records, want %d: %v", len(all), adds+1, err)
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
