package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/reconcile"
)

var key = attachment.Key{Network: "n", ContainerID: "c", IfName: "eth0"}

// Names out of a cache entry, which become a file's name, are those of the attachment or are refused.
func TestAnEntryOfAnotherAttachmentIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		entry reconcile.CacheEntry
		list  string
	}{
		"the network a path":      {reconcile.CacheEntry{NetworkName: "../../x", ContainerID: "c", IfName: "eth0"}, "n"},
		"the container a path":    {reconcile.CacheEntry{NetworkName: "n", ContainerID: "../c", IfName: "eth0"}, "n"},
		"the interface a path":    {reconcile.CacheEntry{NetworkName: "n", ContainerID: "c", IfName: "/etc"}, "n"},
		"a NUL":                   {reconcile.CacheEntry{NetworkName: "n\x00", ContainerID: "c", IfName: "eth0"}, "n"},
		"the list's name a path":  {reconcile.CacheEntry{NetworkName: "n", ContainerID: "c", IfName: "eth0"}, "../../n"},
		"another container":       {reconcile.CacheEntry{NetworkName: "n", ContainerID: "d", IfName: "eth0"}, "n"},
		"another network's list":  {reconcile.CacheEntry{NetworkName: "n", ContainerID: "c", IfName: "eth0"}, "m"},
		"a name of 10,000 bytes":  {reconcile.CacheEntry{NetworkName: strings.Repeat("n", 10000), ContainerID: "c", IfName: "eth0"}, "n"},
		"no name":                 {reconcile.CacheEntry{ContainerID: "c", IfName: "eth0"}, "n"},
		"upper case is different": {reconcile.CacheEntry{NetworkName: "N", ContainerID: "c", IfName: "eth0"}, "n"},
	} {
		if err := (cached{c.entry}).belongs(key, c.list); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := (cached{reconcile.CacheEntry{NetworkName: "n", ContainerID: "c", IfName: "eth0"}}).belongs(key, "n"); err != nil {
		t.Error(err)
	}
}

// A record that names another file than the attachment's as the runtime's entry removes nothing.
func TestOnlyTheAttachmentsOwnCacheFileIsRemoved(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "results"), 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "results", "n-c-eth0")
	for path, want := range map[string]bool{
		own: false, filepath.Join(dir, "results", "n-d-eth0"): true, filepath.Join(dir, "n-c-eth0"): true,
		dir + "/results/../results/n-c-eth0": true,
	} {
		for _, f := range []string{own, path} {
			if err := os.WriteFile(f, []byte(`{"a":1}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		forgetCacheEntry(&attachment.Record{Key: key, Replay: &attachment.Replay{CacheFile: path, CacheEntry: []byte(`{"a":1}`)}})
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
}

// Whatever CNI_ARGS holds: what comes out is what a runtime would pass on, pair by pair.
func FuzzArgs(f *testing.F) {
	for _, s := range []string{"", "IgnoreUnknown=1;K8S_POD_NAME=a", ";;", "=", "a=b=c", "novalue", "a=;b", "K=\x00", "a=b;a=c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		pairs := splitArgs(s)
		var back []string
		for _, p := range pairs {
			if strings.ContainsAny(p[0], "=;") || strings.Contains(p[1], ";") {
				t.Errorf("%q has the pair %q", s, p)
			}
			back = append(back, p[0]+"="+p[1])
		}
		var want []string
		for _, kv := range strings.Split(s, ";") {
			if strings.Contains(kv, "=") {
				want = append(want, kv)
			}
		}
		if strings.Join(back, ";") != strings.Join(want, ";") {
			t.Errorf("%q became %q", s, back)
		}
	})
}
