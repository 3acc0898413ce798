// Command backstopctl shows and finishes what attachments left on a node.
package main

import (
	"os"
	"runtime"

	"github.com/backstop-cni/backstop/internal/cli"
)

// The main goroutine keeps the main thread: /proc/thread-self/ns/net is the
// host's only on a thread that never entered a pod.
func init() { runtime.LockOSThread() }

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
