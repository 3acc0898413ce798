// Package examples holds conflists that an operator can copy. These tests keep
// them, and the entries that the README shows, such that they load.
package examples

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/backstop-cni/backstop/plugin"
	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/version"
)

// The README promises a list for each of these.
var cnis = []string{"aws-vpc-cni", "antrea", "openshift-sdn", "ovn-kubernetes", "calico", "cilium", "multus", "reference"}

func TestListPerCNI(t *testing.T) {
	for _, cni := range cnis {
		if len(files(t, cni, ".conflist")) == 0 {
			t.Errorf("examples/%s has no conflist", cni)
		}
	}
}

func TestLists(t *testing.T) {
	for _, path := range files(t, ".", ".conflist") {
		t.Run(path, func(t *testing.T) {
			// Not NetworkConfFromFile: it would also load what lies in a directory of the network's name.
			list, err := libcni.NetworkConfFromBytes(read(t, path))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(version.All.SupportedVersions(), list.CNIVersion) {
				t.Errorf("cniVersion %q is none of %v", list.CNIVersion, version.All.SupportedVersions())
			}
			last := len(list.Plugins) - 1
			if last < 1 {
				t.Fatalf("%d plugins: want a primary, and backstop after it", len(list.Plugins))
			}
			for i, p := range list.Plugins {
				if (p.Network.Type == "backstop") != (i == last) {
					t.Errorf("plugin %d of %d is %q: backstop stands once, and last", i+1, last+1, p.Network.Type)
				}
			}
			if err := validate(list.Plugins[last].Bytes); err != nil {
				t.Error(err)
			}
		})
	}
}

// A file in a directory of the network's name is appended to the list (libcni
// 1.3 and later), so that a list that its CNI writes anew at every start need
// not be touched.
func TestDropIn(t *testing.T) {
	want, err := libcni.NetworkConfFromBytes(read(t, "aws-vpc-cni/10-aws.conflist"))
	if err != nil {
		t.Fatal(err)
	}

	var stock map[string]any
	if err := json.Unmarshal(want.Bytes, &stock); err != nil {
		t.Fatal(err)
	}
	plugins := stock["plugins"].([]any)
	stock["plugins"] = plugins[:len(plugins)-1]
	b, err := json.Marshal(stock)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "10-aws.conflist"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS("aws-vpc-cni/drop-in")); err != nil {
		t.Fatal(err)
	}

	got, err := libcni.NetworkConfFromFile(filepath.Join(dir, "10-aws.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Plugins) != len(want.Plugins) {
		t.Fatalf("stock list and drop-in give %d plugins, want %d", len(got.Plugins), len(want.Plugins))
	}
	last := len(want.Plugins) - 1
	if a, b := canonical(t, got.Plugins[last].Bytes), canonical(t, want.Plugins[last].Bytes); a != b {
		t.Errorf("the drop-in's entry and the list's differ:\n%s\n%s", a, b)
	}
}

var jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)```")

// Every entry that the README shows must be one that backstop accepts.
func TestREADME(t *testing.T) {
	blocks := jsonBlock.FindAllSubmatch(read(t, "../README.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("the README shows no entry")
	}
	for _, b := range blocks {
		if err := validate(b[1]); err != nil {
			t.Errorf("%v in:\n%s", err, b[1])
		}
	}
}

// validate is stricter than backstop itself, which takes unknown keys with a
// warning: in an example one is a mistake.
func validate(entry []byte) error {
	var kind struct{ Type string }
	if err := json.Unmarshal(entry, &kind); err != nil {
		return err
	}
	if kind.Type != "backstop" {
		return fmt.Errorf("type is %q", kind.Type)
	}
	cfg, problems, err := plugin.ParseConfig(entry)
	if err != nil {
		return err
	}
	for _, p := range problems {
		err = errors.Join(err, p)
	}
	if len(cfg.Unknown) > 0 {
		err = errors.Join(err, fmt.Errorf("unknown keys: %v", cfg.Unknown))
	}
	return err
}

func files(t *testing.T, dir, ext string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ext {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// canonical gives JSON that compares as text.
func canonical(t *testing.T, b []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
