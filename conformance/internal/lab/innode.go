package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/backstop-cni/backstop/internal/testnode"
)

const insideEnv = "BACKSTOP_LAB_INSIDE"

// Main is the main function of a program that does its work in a throw-away node: it starts the program again there,
// with the same arguments, and exits as that one does. An error of work is printed, and exits with 1.
func Main(node testnode.Node, work func(Programs) error) {
	err := inNode(node, work)
	if err == nil {
		return
	}
	// Outside, an exit code means that the program inside has said why.
	var told *exec.ExitError
	if inside() || !errors.As(err, &told) {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
	}
	os.Exit(1)
}

func inside() bool { return os.Getenv(insideEnv) != "" }

func inNode(node testnode.Node, work func(Programs) error) error {
	p, err := FindPrograms(".")
	if err != nil {
		return err
	}
	if inside() {
		return work(p)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("looking for this program: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop() // interrupted, the node still goes
	return node.Exec(ctx, testnode.Command{
		Args:   append([]string{self}, os.Args[1:]...),
		Env:    append(p.Environment(), insideEnv+"=1"),
		Stdout: os.Stdout,
		Stderr: os.Stderr,
	})
}
