package conformance

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/backstop-cni/backstop/conformance/internal/lab"
	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/internal/testnode/nodescript"
)

// TestScenarios tells every story of scenarios/, in every way that its matrix asks for, each in a node of its own.
// As many run at a time as the machine has cores.
func TestScenarios(t *testing.T) {
	programs := need(t)
	files, err := filepath.Glob("scenarios/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario found: %v", err)
	}
	for _, file := range files {
		cells, err := readMatrix(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			for _, c := range cells {
				t.Run(c.name(), func(t *testing.T) {
					t.Parallel()
					testnode.Run(t, func(t *testing.T) { tell(t, programs, file, c) })
				})
			}
		})
	}
}

// tell plays one story in the node that the test already is in.
func tell(t *testing.T, programs lab.Programs, file string, c cell) {
	commands := nodescript.Commands(&lab.Daemon{Program: filepath.Join(programs.Tools, "gatedprimary")})
	maps.Copy(commands, nodescript.PluginCommands())
	maps.Copy(commands, ownCommands())
	testscript.Run(t, testscript.Params{
		Files: []string{file},
		Cmds:  commands,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, programs.Environment()...)
			env.Setenv("NETCONFPATH", confDir)
			for _, v := range c {
				env.Setenv(v.key, v.value)
			}
			return nil
		},
		Condition:           func(condition string) (bool, error) { return holds(condition, c) },
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// holds decides a story's [KEY:value]: does this cell give KEY that value?
func holds(condition string, c cell) (bool, error) {
	key, wanted, _ := strings.Cut(condition, ":")
	value, ok := c.value(key)
	if !ok {
		return false, fmt.Errorf("the story's matrix has no %s", key)
	}
	return value == wanted, nil
}

// need fails the test when something is missing that the stories run, and says how to get it.
func need(t *testing.T) lab.Programs {
	t.Helper()
	programs, err := lab.FindPrograms(".")
	for program, pkg := range map[string]string{"nft": "nftables", "iptables-save": "iptables", "ip6tables-save": "iptables"} {
		err = errors.Join(err, testnode.NeedProgram(program, pkg))
	}
	if err := errors.Join(err, testnode.Prerequisites()); err != nil {
		t.Fatal(err)
	}
	return programs
}
