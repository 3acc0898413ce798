package nodescript

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/backstop-cni/backstop/internal/testnode"
)

func pod(_ *testscript.TestScript, args []string) error {
	switch {
	case len(args) == 1:
		if err := run("ip", "netns", "add", args[0]); err != nil {
			return err
		}
		return run("ip", "-n", args[0], "link", "set", "lo", "up")
	case len(args) == 2 && args[0] == "-gone":
		return testnode.RemovePod(args[1])
	default:
		return fmt.Errorf("pod: one name is wanted")
	}
}

func run(program string, args ...string) error {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return nil
}
