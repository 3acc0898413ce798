//go:build crashpoints

package crash

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Env names the point and, behind a colon, which pass ends the process; the first without it.
const Env = "BACKSTOP_CRASH_AT"

// spread is how long Soon waits at most: about what a commit takes.
const spread = 2 * time.Millisecond

var (
	point, pass = wanted()
	passed      atomic.Int64
)

func wanted() (string, int64) {
	name, n, _ := strings.Cut(os.Getenv(Env), ":")
	nth, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		nth = 1
	}
	return name, nth
}

// At ends the process with SIGKILL if this is the pass of this point that the environment names.
func At(name string) {
	if name == point && passed.Add(1) == pass {
		die()
	}
}

// Soon ends the process at some moment after this pass, unless the process was quicker than that.
func Soon(name string) {
	if name != point || passed.Add(1) != pass {
		return
	}
	go func() {
		for end := time.Now().Add(rand.N(spread)); time.Now().Before(end); { // a sleep is too coarse
		}
		die()
	}()
}

// die does not return: SIGKILL reaches the own process before kill(2) is back, and no code runs after it.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
