package cli

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var writePages = flag.Bool("write", false, "write docs/man and docs/completions")

// The pages that packages install are those of the commands as they are.
func TestManPagesAndCompletionsAreNotStale(t *testing.T) {
	a := &app{stdin: &bytes.Buffer{}, stdout: io.Discard, stderr: io.Discard}
	root := a.root()
	root.DisableAutoGenTag = true
	root.Version = ""
	fresh := t.TempDir()
	man, completions := filepath.Join(fresh, "man"), filepath.Join(fresh, "completions")
	for _, dir := range []string{man, completions} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	day := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) // a page does not change with the day it is made on
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "8", Source: "backstop", Manual: "backstop", Date: &day}, man); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(*cobra.Command, io.Writer) error{
		"backstopctl.bash": func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) },
		"_backstopctl":     func(c *cobra.Command, w io.Writer) error { return c.GenZshCompletion(w) },
		"backstopctl.fish": func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
	} {
		var b bytes.Buffer
		if err := write(root, &b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(completions, name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if *writePages {
		for _, dir := range []string{"man", "completions"} {
			to := filepath.Join("../../docs", dir)
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(to, os.DirFS(filepath.Join(fresh, dir))); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, got := pages(t, fresh), pages(t, "../../docs/man", "../../docs/completions")
	for name, text := range want {
		if got[name] != text {
			t.Errorf("docs/…/%s is stale: go test ./internal/cli -run TestManPages -write", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("docs/…/%s is of no command: go test ./internal/cli -run TestManPages -write", name)
	}
	if len(want) < 15 {
		t.Errorf("only %d pages were made", len(want))
	}
}

// pages are the files below some directories, by their names.
func pages(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			out[filepath.Base(path)] = string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
