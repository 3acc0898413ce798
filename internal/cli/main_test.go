package cli

import (
	"maps"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/internal/testnode/nodescript"
	"github.com/backstop-cni/backstop/plugin"
)

func init() { runtime.LockOSThread() } // as the commands' mains do

// The test binary is both programs, too: stories start them as processes of their own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"backstop":    func() { os.Exit(plugin.Run(os.Stdin, os.Stdout, os.Stderr)) },
		"backstopctl": func() { os.Exit(Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

func TestStories(t *testing.T) {
	stories, err := os.ReadDir("testdata/stories")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stories {
		t.Run(strings.TrimSuffix(s.Name(), ".txtar"), func(t *testing.T) {
			// A journal in memory is a finding.
			node := testnode.Node{Disk: strings.HasPrefix(s.Name(), "doctor")}
			node.Run(t, func(t *testing.T) {
				cmds := nodescript.Commands(&nodescript.Socket{Path: "/run/primary.sock"})
				maps.Copy(cmds, nodescript.PluginCommands())
				cmds["exits"] = nodescript.Command(exits).Func("exits CODE COMMAND...")
				testscript.Run(t, testscript.Params{
					Files: []string{"testdata/stories/" + s.Name()},
					Cmds:  cmds,
					// A process under the race detector ends at once, instead of a second later.
					Setup: func(env *testscript.Env) error { env.Setenv("GORACE", "atexit_sleep_ms=0"); return nil },
				})
			})
		})
	}
}

// exits runs a command and wants an exit code.
func exits(ts *testscript.TestScript, args []string) error {
	err := ts.Exec("sh", append([]string{"-c", `want=$1; shift; "$@" </dev/null; got=$?; [ $got = $want ] || { echo "exit code $got, want $want" >&2; exit 1; }`, "sh"}, args...)...)
	return err
}
