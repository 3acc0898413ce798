package reconcile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

// The name is libcni's; a runtime's entry that is not found there makes every DEL look acknowledged.
func TestCacheFile(t *testing.T) {
	got := CacheFile("/var/lib/cni", attachment.Key{Network: "k8s-pod-network", ContainerID: "3f2a", IfName: "eth0"})
	if want := "/var/lib/cni/results/k8s-pod-network-3f2a-eth0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestReadCacheEntry(t *testing.T) {
	dir := t.TempDir()
	entry := `{"kind":"cniCacheV1","containerId":"3f2a"}`
	for name, text := range map[string]string{"whole": entry, "empty": "", "cut": entry[:20], "large": `"` + strings.Repeat("x", maxCacheEntry) + `"`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("whole", filepath.Join(dir, "link")), unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"whole": entry, "missing": "", "empty": "" /* after a crash: aws-vpc-cni #2283 */, "cut": "", "large": "", "link": "", "fifo": "", ".": "",
	} {
		if got := ReadCacheEntry(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s: %.60q, want %q", name, got, want)
		}
	}
}
