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

// TraceEnv names a file that gets a line for each pass of each point.
const TraceEnv = "BACKSTOP_CRASH_TRACE"

// spread is how long Soon waits at most: about what a commit takes.
const spread = 2 * time.Millisecond

var (
	point, pass = wanted()
	passed      atomic.Int64
	trace       = os.Getenv(TraceEnv)
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
	note(name)
	if name == point && passed.Add(1) == pass {
		die()
	}
}

// Soon ends the process at some moment after this pass, unless the process was quicker than that.
func Soon(name string) {
	note(name)
	if name != point || passed.Add(1) != pass {
		return
	}
	go func() {
		for end := time.Now().Add(rand.N(spread)); time.Now().Before(end); { // a sleep is too coarse
		}
		die()
	}()
}

// note appends to the trace, one write a line.
func note(name string) {
	if trace == "" {
		return
	}
	f, err := os.OpenFile(trace, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(name + "\n")
		f.Close()
	}
	if err != nil { // a trace that lacks a point would say that it is never reached
		panic(err)
	}
}

// die does not return: SIGKILL reaches the own process before kill(2) is back, and no code runs after it.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
