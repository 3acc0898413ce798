// A pod's start waits for this process: it is too short to follow a CPU limit that changes.
//go:debug updatemaxprocs=0

// Command backstop is a chained CNI plugin, placed last in a conflist.
package main

import (
	"os"
	"runtime"

	"github.com/backstop-cni/backstop/plugin"
)

// The main goroutine keeps the main thread: /proc/thread-self/ns/net is the
// host's only on a thread that never entered a pod.
func init() { runtime.LockOSThread() }

func main() {
	os.Exit(plugin.Run(os.Stdin, os.Stdout, os.Stderr))
}
