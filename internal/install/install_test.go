package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
)

// place is a node's two directories, with files in the first.
func place(t *testing.T, files map[string]string) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{ConfDir: filepath.Join(dir, "net.d"), BinDir: filepath.Join(dir, "bin"), Binary: filepath.Join(dir, "backstop")}
	if err := errors.Join(os.Mkdir(o.ConfDir, 0o755), os.WriteFile(o.Binary, []byte("the plugin"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		put(t, filepath.Join(o.ConfDir, name), text)
	}
	return o
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree is every file below a directory, with its text and mode.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		fi, ierr := d.Info()
		rel, _ := filepath.Rel(dir, path)
		if err == nil && ierr == nil {
			out[rel] = fi.Mode().String() + " " + string(b)
		}
		return errors.Join(err, ierr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	aws     = `{"cniVersion":"0.4.0","name":"aws-cni","plugins":[{"type":"aws-cni"},{"type":"portmap"}]}`
	flannel = `{"cniVersion":"0.3.1","name":"cbr0","plugins":[{"type":"flannel","delegate":{}}]}`
	single  = `{"cniVersion":"0.3.1", "name":"old","type":"bridge","ipam":{"type":"host-local","subnet":"10.1.0.0/24"}}`
	multus  = `{"cniVersion":"0.3.1","name":"multus-cni-network","type":"multus-shim","clusterNetwork":"cbr0"}`
)

func TestInstallAndUninstall(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		network string
		want    string // the file with the entry
		keys    string // in the entry
	}{
		"the first list":          {map[string]string{"10-aws.conflist": aws, "20-other.conflist": flannel}, "", "10-aws.conflist", `"grpc+unix:///var/run/aws-node/ipamd.sock"`},
		"a named one":             {map[string]string{"10-aws.conflist": aws, "20-other.conflist": flannel}, "cbr0", "20-other.conflist", `"host-local"`},
		"a single configuration":  {map[string]string{"10-old.conf": single}, "", "10-old.conflist", `"host-local"`},
		"what Multus hands on to": {map[string]string{"00-multus.conf": multus, "10-aws.conflist": aws, "20-flannel.conflist": flannel}, "", "20-flannel.conflist", `"/var/lib/cni/multus"`},
		"files that are no lists": {map[string]string{"10-aws.conflist": aws, "05-calico-kubeconfig": "server", "99-broken.conf": "{"}, "", "10-aws.conflist", `backstop`},
	} {
		t.Run(name, func(t *testing.T) {
			o := place(t, c.files)
			o.Network = c.network
			before := tree(t, o.ConfDir)
			done, err := Install(o)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(done.List) != c.want || !done.Changed || done.Binary != filepath.Join(o.BinDir, "backstop") {
				t.Errorf("got %+v, want %s", done, c.want)
			}
			list, err := libcni.ConfListFromFile(done.List)
			if err != nil {
				t.Fatal(err)
			}
			last := list.Plugins[len(list.Plugins)-1]
			if last.Network.Type != pluginType || !strings.Contains(string(last.Bytes), c.keys) {
				t.Errorf("the last plugin is %s, want %s in it", last.Bytes, c.keys)
			}
			once := tree(t, o.ConfDir)
			again, err := Install(o)
			if err != nil || again.Changed || again.Binary != "" || fmt.Sprint(tree(t, o.ConfDir)) != fmt.Sprint(once) {
				t.Errorf("a second time: %+v, %v", again, err)
			}
			for range 2 { // the second time there is nothing to do
				if _, err := Uninstall(o, nil, false); err != nil {
					t.Fatal(err)
				}
				if got := tree(t, o.ConfDir); fmt.Sprint(got) != fmt.Sprint(before) {
					t.Errorf("after the uninstall:\n%v\nwant\n%v", got, before)
				}
			}
			if left := tree(t, o.BinDir); len(left) > 0 {
				t.Errorf("left of the plugin: %v", left)
			}
		})
	}
}

func TestInstallRefusesAndChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		network string
		want    string
	}{
		"nothing there":            {nil, "", "has no configuration yet"},
		"no such network":          {map[string]string{"10-aws.conflist": aws}, "cbr0", `network "cbr0"`},
		"a broken one comes first": {map[string]string{"05-new.conflist": aws[:40], "10-aws.conflist": aws}, "", "05-new.conflist"},
		"not the last":             {map[string]string{"10-aws.conflist": `{"name":"n","plugins":[{"type":"a"},{"type":"backstop"},{"type":"b"}]}`}, "", "must be the last"},
		"Multus alone":             {map[string]string{"00-multus.conf": multus}, "", "hands on to"},
		"delegates within":         {map[string]string{"00-multus.conf": `{"name":"m","type":"multus","delegates":[{"type":"flannel"}]}`, "10-aws.conflist": aws}, "", "within"},
	} {
		t.Run(name, func(t *testing.T) {
			o := place(t, c.files)
			o.Network = c.network
			before := fmt.Sprint(tree(t, filepath.Dir(o.ConfDir)))
			if done, err := Install(o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v, want %q", done, err, c.want)
			}
			if after := fmt.Sprint(tree(t, filepath.Dir(o.ConfDir))); after != before {
				t.Errorf("changed:\n%s\nwas\n%s", after, before)
			}
		})
	}
}

// Who edited the list after the install keeps the edit.
func TestUninstallKeepsWhatOthersWroteSince(t *testing.T) {
	o := place(t, map[string]string{"10-aws.conflist": aws})
	done, err := Install(o)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(done.List)
	put(t, done.List, strings.Replace(string(b), `"cniVersion":"0.4.0"`, `"cniVersion":"1.0.0"`, 1))
	if _, err := Uninstall(o, nil, false); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(aws, "0.4.0", "1.0.0", 1)
	if b, _ := os.ReadFile(done.List); string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
	if b, err := os.ReadFile(done.Backup); err != nil || string(b) != aws {
		t.Errorf("the back-up of what it was is %q (%v)", b, err)
	}
}

// The binary stays as long as a cached result names it, whichever cache that is in.
func TestTheBinaryStaysForCachedResults(t *testing.T) {
	o := place(t, map[string]string{"00-multus.conf": multus, "10-flannel.conflist": flannel})
	caches := []string{t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "none")}
	done, err := Install(o)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := os.ReadFile(done.List)
	entries := []string{}
	for i, c := range caches[:2] {
		dir := filepath.Join(c, "results")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, config := range map[string]string{"with": string(list), "without": flannel} {
			b, _ := json.Marshal(map[string]any{"kind": "cniCacheV1", "containerId": name, "config": []byte(config), "ifName": "eth0", "networkName": "cbr0"})
			path := filepath.Join(dir, fmt.Sprintf("cbr0-%s%d-eth0", name, i))
			put(t, path, string(b))
			if name == "with" {
				entries = append(entries, path)
			}
		}
	}
	for i := range entries {
		u, err := Uninstall(o, caches, false)
		if err != nil || len(u.Holds) != len(entries)-i || u.Binary != "" {
			t.Fatalf("%d entries left: %+v, %v", len(entries)-i, u, err)
		}
		if _, err := os.Stat(filepath.Join(o.BinDir, "backstop")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := Uninstall(o, caches, false); err != nil || len(u.Holds) > 0 || u.Binary == "" {
		t.Errorf("nothing names it any more: %+v, %v", u, err)
	}
}

// However the primary's installer writes its list anew, the entry is there again soon, and nobody ever reads half a file of ours.
func TestWatchPutsTheEntryBack(t *testing.T) {
	o := place(t, map[string]string{"10-aws.conflist": aws})
	path := filepath.Join(o.ConfDir, "10-aws.conflist")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	said := make(chan error, 64)
	go func() { ended <- Watch(ctx, o, func(_ *Done, err error) { said <- err }) }()

	// The installers below write whole files: whatever else is read is ours.
	whole := []string{aws}
	var torn []string
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		for ctx.Err() == nil {
			b, err := os.ReadFile(path)
			if err == nil && !json.Valid(b) && !slices.Contains(whole, string(b)) {
				torn = append(torn, string(b))
			}
		}
	}()
	hasEntry := func() bool {
		b, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(b), `"backstop"`)
	}
	soon := func(what string) {
		t.Helper()
		for end := time.Now().Add(2 * time.Second); !hasEntry(); {
			if time.Now().After(end) {
				t.Fatalf("%s: no entry within 2 s", what)
			}
			time.Sleep(5 * time.Millisecond) // what is waited for is another goroutine's work
		}
	}
	soon("at the start")
	replaced := filepath.Join(o.ConfDir, ".new")
	for i := range 10 {
		put(t, replaced, aws)
		if err := os.Rename(replaced, path); err != nil {
			t.Fatal(err)
		}
		soon(fmt.Sprintf("replaced for the %d. time", i+1))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	put(t, replaced, aws)
	if err := os.Rename(replaced, path); err != nil {
		t.Fatal(err)
	}
	soon("removed and written")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-reading
	if len(torn) > 0 {
		t.Errorf("a reader saw %q", torn[0])
	}
}
