// Package lab is what the scenarios, the demo and the bench have in common: where the programs are, the gated
// primary's daemon, and a way for a program to go on inside a throw-away node.
package lab

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Programs are the directories with what is run: cnitool, the reference plugins and the gated primary in one, backstop
// and backstopctl in the other.
type Programs struct{ Tools, Backstop string }

// FindPrograms looks where `make tools` here and `make build` at the top put them; top is the directory of this
// module. BACKSTOP_BIN in the environment names another build of backstop. What is missing is an error that says
// which command makes it.
func FindPrograms(module string) (Programs, error) {
	var p Programs
	var missing []error
	for _, d := range []struct {
		dir     *string
		path    string
		command string
		holds   []string
	}{
		{&p.Tools, filepath.Join(module, "bin"), "make tools", []string{"cnitool", "gatedprimary"}},
		{&p.Backstop, cmp.Or(os.Getenv("BACKSTOP_BIN"), filepath.Join(module, "../bin")), "make build", []string{"backstop", "backstopctl"}},
	} {
		path, err := filepath.Abs(d.path)
		if err != nil {
			return Programs{}, fmt.Errorf("looking for %s: %w", d.path, err)
		}
		*d.dir = path
		for _, program := range d.holds {
			if _, err := os.Stat(filepath.Join(path, program)); err != nil {
				missing = append(missing, fmt.Errorf("run `%s` in the project's top directory: %w", d.command, err))
			}
		}
	}
	return p, errors.Join(missing...)
}

// CNIPath is the value of CNI_PATH for them.
func (p Programs) CNIPath() string { return p.Tools + ":" + p.Backstop }

// Environment is what a person who uses them by name has set.
func (p Programs) Environment() []string {
	return []string{"CNI_PATH=" + p.CNIPath(), "PATH=" + p.CNIPath() + ":" + os.Getenv("PATH") + ":/usr/sbin:/sbin"}
}
