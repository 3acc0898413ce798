package model

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/internal/cli"
	"github.com/backstop-cni/backstop/plugin"
)

var (
	seedFlag   = flag.Uint64("seed", 1, "seed of the first run; each run after it has the next one")
	opsFlag    = flag.Int("operations", 0, "how many operations, in whole runs; 0: as many as a short test has time for")
	onlyFlag   = flag.String("only", "", "numbers of the operations to play, with commas between; all if empty")
	shrinkFlag = flag.Duration("shrink", time.Minute, "how long to look for a shorter run that fails, too")
	nodesFlag  = flag.Int("nodes", 1, "how many nodes play at the same time")
)

func init() { runtime.LockOSThread() } // as the programs' mains do

// The test binary is the programs, too: the model starts them as processes of their own.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "backstop":
		os.Exit(plugin.Run(os.Stdin, os.Stdout, os.Stderr))
	case "backstopctl":
		os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case primaryType:
		os.Exit(primaryMain())
	}
	os.Exit(m.Run())
}
