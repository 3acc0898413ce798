// Demo shows backstop's job while it happens: a pod whose primary's daemon is dead when the pod goes. It makes a
// throw-away node for it, so nothing of the machine is touched, and fails if that node is not clean in the end.
//
// `make demo` at the top builds what it needs and runs it.
package main

import (
	"os"
	"path/filepath"

	"github.com/backstop-cni/backstop/conformance/internal/lab"
	"github.com/backstop-cni/backstop/internal/testnode"
)

func main() {
	lab.Main(testnode.Node{}, func(p lab.Programs) error {
		s := &story{out: os.Stdout, daemon: lab.Daemon{Program: filepath.Join(p.Tools, "gatedprimary")}}
		return s.play()
	})
}
