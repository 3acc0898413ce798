package plugin

import (
	"errors"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/journal"
	"go.etcd.io/bbolt"
)

// One record that cannot be decoded keeps GC from no other.
func TestGCBesideADamagedRecord(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		crowd(t, 3, "/run/netns/gone")
		db, err := bbolt.Open(journal.DefaultPath, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("attachments")).Put([]byte("n/0/eth0"), []byte("no record"))
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		_, log, ok := invoke(t, "GC", `{"cniVersion":"1.1.0","name":"n","type":"backstop","cni.dev/valid-attachments":[]}`)
		if !ok || !strings.Contains(log, "n/0/eth0") {
			t.Errorf("%v, log %q", ok, log)
		}
		others, _ := openRecords(t)
		for _, r := range others {
			if r.State != attachment.Owed {
				t.Errorf("%s is %s", r.Key, r.State)
			}
		}
		if len(others) != 3 {
			t.Errorf("%d others, want three", len(others))
		}
	})
}

// A GC of hundreds of dead attachments (a runtime that lost its state) takes the lock for each chunk anew: who asks for
// it meanwhile, a pod's ADD, has it long before the end.
func TestGCLetsOthersIn(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		const dead = 600
		crowd(t, dead*3/2, "/run/netns/gone") // a third of them are owed
		done := make(chan struct{})
		go func() {
			defer close(done)
			out, log, ok := invoke(t, "GC", `{"cniVersion":"1.1.0","name":"n","type":"backstop","cni.dev/valid-attachments":[]}`)
			if !ok || log != "" {
				t.Error(out, log)
			}
		}()
		left := func() (n int) {
			all, err := openRecords(t)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				if r.State == attachment.Attached {
					n++
				}
			}
			return n
		}
		between := 0
		for n := dead; n > 0; n = left() {
			if n < dead {
				between++
			}
		}
		<-done
		if between == 0 {
			t.Errorf("nobody else had the journal's lock before all %d records were torn down", dead)
		}
		t.Logf("%d others had the lock meanwhile", between)
	})
}
