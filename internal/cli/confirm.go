package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

// confirm asks on a terminal unless --yes was given.
func (a *app) confirm(question string) error {
	if a.yes {
		return nil
	}
	f, ok := a.stdin.(*os.File)
	if !ok || !isTerminal(f) {
		return errUnasked
	}
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	line, _ := bufio.NewReader(f).ReadString('\n')
	if s := strings.ToLower(strings.TrimSpace(line)); s != "y" && s != "yes" {
		return errUnasked
	}
	return nil
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

func printYAML(w io.Writer, v any) error {
	b, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("write yaml: %w", err)
	}
	_, err = w.Write(b)
	return err
}
