package main

import (
	"fmt"
	"os/exec"
	"strings"
)

// do runs a command as a person at a terminal would, and shows it; of its output only the beginning of an error.
func (s *story) do(command string) error {
	s.say("   $ %s", command)
	out, err := output(command)
	if err != nil {
		first, _, _ := strings.Cut(string(out), ";")
		s.say("     %s", strings.TrimSpace(first))
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// show is do with all of the output.
func (s *story) show(command string) error {
	s.say("   $ %s", command)
	out, err := output(command)
	s.say("%s", indent(string(out)))
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

func output(command string) ([]byte, error) {
	args := strings.Fields(command)
	return exec.Command(args[0], args[1:]...).CombinedOutput()
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("     " + line)
	}
	return b.String()
}
