package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The plugin is started for every pod: what it imports is paid for by each.
func TestImportsAreFew(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 50 {
		t.Fatalf("go list gives only %d packages", len(deps))
	}
	for _, d := range deps {
		for _, banned := range []string{
			"github.com/spf13/", "net/http", "crypto/tls", "google.golang.org/", "go.opentelemetry.io/", "os/exec",
			"github.com/containernetworking/cni/libcni", "github.com/containernetworking/cni/pkg/invoke",
			"github.com/containernetworking/plugins", "sigs.k8s.io/", "k8s.io/", "text/template", "html/",
			"github.com/backstop-cni/backstop/internal/cli", "github.com/backstop-cni/backstop/internal/replay",
			"github.com/backstop-cni/backstop/internal/netfilter", "github.com/google/nftables", "github.com/mdlayher/",
		} {
			if strings.HasPrefix(d, banned) {
				t.Errorf("the plugin imports %s", d)
			}
		}
		if d == "github.com/backstop-cni/backstop/internal/crash" {
			if imports, err := exec.Command("go", "list", "-f", "{{.Imports}}", d).Output(); err != nil || string(imports) != "[]\n" {
				t.Errorf("%s imports %s without its tag: %v", d, imports, err)
			}
		}
		if first, _, _ := strings.Cut(d, "/"); strings.Contains(first, ".") && !allowed(d) {
			t.Errorf("the plugin imports %s, which is not in the list here: is it worth each pod's start?", d)
		}
	}
}

func allowed(dep string) bool {
	for _, ok := range []string{
		"github.com/backstop-cni/backstop/", "github.com/containernetworking/cni/pkg/", "github.com/vishvananda/netns" /* skel */, "github.com/sirupsen/logrus",
		"go.etcd.io/bbolt", "golang.org/x/sys/unix",
		"github.com/mailru/easyjson/", "github.com/josharian/intern", // what the generated codec is written in
	} {
		if strings.HasPrefix(dep, ok) {
			return true
		}
	}
	return false
}

// Built as `make build` builds it, the plugin is static and at most 5 MB.
func TestBinaryIsSmallAndStatic(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "backstop")
	c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, ".")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fi, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	if fi.Size() > 5<<20 {
		t.Errorf("%d bytes, at most %d", fi.Size(), 5<<20)
	}
	b, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	// internal/crash is imported by its name and leaves nothing behind without its tag.
	for _, trace := range []string{"internal/crash", "BACKSTOP_CRASH_AT"} {
		if strings.Contains(string(b), trace) {
			t.Errorf("%q is in the plugin: crash points are for `make crash` alone", trace)
		}
	}
	if strings.Contains(string(b), "ld-linux") {
		t.Error("the plugin needs a dynamic linker")
	}
}
