package reconcile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
)

// A sweep gives back what host-local holds for a pod that is gone, for records of an earlier boot too (containerd/cri #948),
// and nothing that another container or interface holds.
func TestSweepReleasesReservations(t *testing.T) {
	f := kernel.NewFake()
	b := newBench(t, f)
	data := t.TempDir()
	file := func(ip string) string { return filepath.Join(data, "net", ip) }
	if err := os.Mkdir(filepath.Join(data, "net"), 0o700); err != nil {
		t.Fatal(err)
	}
	for ip, owner := range map[string]string{
		"10.0.0.5": "left\r\neth0", "10.0.0.6": "left\r\nnet1", "10.0.0.7": "other\r\neth0", "10.0.0.8": "rebooted\r\neth0", "10.0.0.9": "running\r\neth0", "lock": "",
	} {
		if err := os.WriteFile(file(ip), []byte(owner), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ipam := json.RawMessage(fmt.Sprintf(`{"type":"host-local","dataDir":%q}`, data))
	for _, id := range []string{"left", "rebooted", "running"} {
		r := b.deferred(b.record(id))
		r.Settings.IPAM = ipam
		switch id {
		case "rebooted":
			r.Node.Now.BootID, r.Del.Refused = "another", true
		case "running":
			r.Settings.Grace = 1 << 60
		}
		b.put(r)
	}
	b.sweep()
	for ip, want := range map[string]bool{"10.0.0.5": false, "10.0.0.6": true, "10.0.0.7": true, "10.0.0.8": false, "10.0.0.9": true, "lock": true} {
		if _, err := os.Lstat(file(ip)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", ip, err, want)
		}
	}
	if r := b.state("left", attachment.Closed); !r.Released {
		t.Error("not noted as released")
	}
	b.state("rebooted", attachment.Closed)
	b.state("running", attachment.Deferred)
}
