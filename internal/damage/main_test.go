package damage

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var write = flag.Bool("write", false, "write docs/damage.md instead of comparing it")

// binEnv names, for the run inside the node, the directory with both programs.
const binEnv = "BACKSTOP_DAMAGE_BIN"

// inNode says that this is the run inside a node.
var inNode bool

// TestMain builds the programs, once, as they are shipped.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if inNode = os.Getenv(binEnv) != ""; !inNode {
		dir, err := os.MkdirTemp("", "backstop-damage.")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		build := exec.Command("go", "build", "-buildvcs=false", "-o", dir+string(filepath.Separator), "../../cmd/backstop", "../../cmd/backstopctl")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n%s", build, err, out)
			return 1
		}
		os.Setenv(binEnv, dir)
	}
	os.Setenv("PATH", os.Getenv(binEnv)+":"+os.Getenv("PATH")+":/usr/sbin:/sbin")
	return m.Run()
}
