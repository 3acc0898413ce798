package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// Whatever lies in the spool: it is refused, or it is a record that can be stored.
func FuzzSpoolEntry(f *testing.F) {
	f.Add([]byte(`{"version":1,"network":"n","containerID":"c","ifName":"eth0","state":"attached","ips":["10.0.0.1"],"resources":[{"kind":"link","share":"own","link":{"index":3,"name":"veth1","kind":"veth"}}],"settings":{"teardown":"always"}}`))
	f.Add([]byte(`{"version":1,"network":"../n","containerID":"c","ifName":"eth0","state":"attached"}`))
	f.Add([]byte(`{"version":1,"network":"n","conta`))
	f.Add([]byte("\x00\x00"))
	f.Add([]byte{})
	path := filepath.Join(f.TempDir(), "entry.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		err := takeOne(path, func(r *attachment.Record, waits bool) error {
			if waits {
				t.Error("nobody waits for it")
			}
			if err := r.Valid(); err != nil {
				return err // as Put does
			}
			if _, err := entries(r); err != nil {
				return err
			}
			if k, err := attachment.ParseKey(r.Key.String()); err != nil || k != r.Key {
				t.Errorf("key %q: %v", r.Key, err)
			}
			return nil
		})
		if err == ErrLater {
			t.Error(err)
		}
	})
}
