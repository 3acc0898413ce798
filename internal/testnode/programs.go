package testnode

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Built is a directory with programs that a command makes.
type Built struct {
	Dir     string
	Command string // to be run in the project's top directory
	Holds   []string
}

// BuiltBackstop is where `make build` puts backstop and backstopctl; top is the project's top directory. BACKSTOP_BIN
// in the environment names another build.
func BuiltBackstop(top string) Built {
	return Built{cmp.Or(os.Getenv("BACKSTOP_BIN"), filepath.Join(top, "bin")), "make build", []string{"backstop", "backstopctl"}}
}

// Programs are directories, as absolute paths: a program is taken from the first one that has it.
type Programs []string

// FindPrograms gives the directories in their order. What is missing is an error that says which command makes it.
func FindPrograms(all ...Built) (Programs, error) {
	var p Programs
	var missing []error
	for _, b := range all {
		path, err := filepath.Abs(b.Dir)
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", b.Dir, err)
		}
		p = append(p, path)
		for _, program := range b.Holds {
			if _, err := os.Stat(filepath.Join(path, program)); err != nil {
				missing = append(missing, fmt.Errorf("run `%s` in the project's top directory: %w", b.Command, err))
			}
		}
	}
	return p, errors.Join(missing...)
}

// CNIPath is the value of CNI_PATH for them.
func (p Programs) CNIPath() string { return strings.Join(p, ":") }

// Environment is what a person who uses them by name has set.
func (p Programs) Environment() []string {
	return []string{"CNI_PATH=" + p.CNIPath(), "PATH=" + p.CNIPath() + ":" + os.Getenv("PATH") + ":/usr/sbin:/sbin"}
}
