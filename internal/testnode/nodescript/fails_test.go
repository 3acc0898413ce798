package nodescript

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// fails runs a story that is expected to go wrong, and reports whether it did.
func fails(t *testing.T, story string) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "story.txtar")
	if err := os.WriteFile(file, []byte(story+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var r recorder
	func() {
		defer func() {
			if p := recover(); p != nil && p != errStopped {
				panic(p)
			}
		}()
		testscript.RunT(&r, testscript.Params{
			Files: []string{file},
			Cmds:  Commands(&Socket{Path: filepath.Join(t.TempDir(), "sock")}),
		})
	}()
	return r.failed
}

// recorder is a testscript.T that remembers a failure instead of failing the test.
type recorder struct{ failed bool }

var errStopped = new(int)

func (r *recorder) Skip(...any)                        { panic(errStopped) }
func (r *recorder) Fatal(...any)                       { r.failed = true; panic(errStopped) }
func (r *recorder) FailNow()                           { r.failed = true; panic(errStopped) }
func (r *recorder) Parallel()                          {}
func (r *recorder) Log(...any)                         {}
func (r *recorder) Verbose() bool                      { return false }
func (r *recorder) Run(_ string, f func(testscript.T)) { f(r) }
