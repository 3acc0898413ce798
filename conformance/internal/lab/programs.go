// Package lab is what the scenarios, the demo and the bench have in common: where the programs are, the gated
// primary's daemon, and a way for a program to go on inside a throw-away node.
package lab

import (
	"path/filepath"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// Programs are the directories with what is run: cnitool, the reference plugins and the gated primary in one, backstop
// and backstopctl in the other.
type Programs struct {
	testnode.Programs
	Tools, Backstop string
}

// FindPrograms looks where `make tools` here and `make build` at the top put them; module is the directory of this
// module.
func FindPrograms(module string) (Programs, error) {
	dirs, err := testnode.FindPrograms(
		testnode.Built{Dir: filepath.Join(module, "bin"), Command: "make tools", Holds: []string{"cnitool", "gatedprimary"}},
		testnode.BuiltBackstop(filepath.Join(module, "..")),
	)
	if err != nil {
		return Programs{}, err
	}
	return Programs{Programs: dirs, Tools: dirs[0], Backstop: dirs[1]}, nil
}
