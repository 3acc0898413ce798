package nodescript

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// Command is a testscript command that has no opposite, so that `! command` is a mistake in the story.
type Command func(ts *testscript.TestScript, args []string) error

// Func makes a Command known to testscript; usage is shown when the story uses it wrongly.
func (c Command) Func(usage string) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command has no opposite; usage: %s", usage)
		}
		if err := c(ts, args); err != nil {
			ts.Fatalf("%v", err)
		}
	}
}

// Commands are the commands of the package documentation. The daemon is the one that `daemon` works on.
func Commands(d Daemon) map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"snap":   Command(snap).Func("snap [-netfilter] [-in POD] FILE"),
		"same":   Command(same).Func("same A B"),
		"kept":   Command(kept).Func("kept A B PATTERN"),
		"lost":   Command(lost).Func("lost A B PATTERN"),
		"has":    Command(has).Func("has [FILE] PATTERN"),
		"lacks":  Command(lacks).Func("lacks [FILE] PATTERN"),
		"pod":    Command(pod).Func("pod [-gone] NAME"),
		"daemon": Command(daemonCommand(d)).Func("daemon up|down|forget"),
	}
}

func snap(ts *testscript.TestScript, args []string) error {
	var view testnode.View
	for len(args) > 1 {
		switch args[0] {
		case "-netfilter":
			view.Netfilter = true
			args = args[1:]
		case "-in":
			view.Netns = args[1]
			args = args[2:]
		default:
			return fmt.Errorf("snap: unknown option %q", args[0])
		}
	}
	if len(args) != 1 {
		return fmt.Errorf("snap: one file is wanted")
	}
	taken, err := view.Take()
	if err != nil {
		return err
	}
	file := ts.MkAbs(args[0])
	if err := os.WriteFile(file, []byte(taken.String()), 0o600); err != nil {
		return fmt.Errorf("keeping the snapshot %s: %w", args[0], err)
	}
	return nil
}

func same(ts *testscript.TestScript, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("same: two snapshots are wanted")
	}
	a, b := read(ts, args[0]), read(ts, args[1])
	if diff := testnode.Diff(a, b); diff != "" {
		return fmt.Errorf("from %s to %s:\n%s", args[0], args[1], diff)
	}
	return nil
}

func kept(ts *testscript.TestScript, args []string) error {
	a, b, wanted, err := pair(ts, args)
	if err != nil {
		return err
	}
	if lost := wanted.Minus(b); len(lost) > 0 {
		return fmt.Errorf("of %s went:\n%sin\n%s", args[2], lost, testnode.Diff(a, b))
	}
	return nil
}

func lost(ts *testscript.TestScript, args []string) error {
	a, b, wanted, err := pair(ts, args)
	if err != nil {
		return err
	}
	if diff := testnode.Diff(a.Minus(wanted), b); diff != "" {
		return fmt.Errorf("from %s to %s, %s apart:\n%s", args[0], args[1], args[2], diff)
	}
	return nil
}

// pair reads two snapshots, and what of the first matches the pattern: something must.
func pair(ts *testscript.TestScript, args []string) (a, b, matching testnode.Snapshot, err error) {
	if len(args) != 3 {
		return nil, nil, nil, fmt.Errorf("two snapshots and a pattern are wanted")
	}
	pattern, err := regexp.Compile(args[2])
	if err != nil {
		return nil, nil, nil, fmt.Errorf("the last argument: %w", err)
	}
	a, b = read(ts, args[0]), read(ts, args[1])
	matching = a.Matching(pattern)
	if len(matching) == 0 {
		return nil, nil, nil, fmt.Errorf("%s has nothing that matches %s:\n%s", args[0], pattern, a)
	}
	return a, b, matching, nil
}

func has(ts *testscript.TestScript, args []string) error {
	found, whole, err := match(ts, args)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("nothing matches %s in:\n%s", args[len(args)-1], whole)
	}
	return err
}

func lacks(ts *testscript.TestScript, args []string) error {
	found, _, err := match(ts, args)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("there is:\n%s", found)
	}
	return err
}

// match finds a pattern in a snapshot, or in the node as it is now, everything included that this machine can show.
func match(ts *testscript.TestScript, args []string) (found, whole testnode.Snapshot, err error) {
	switch len(args) {
	case 1:
		_, noNft := exec.LookPath("nft")
		whole, err = testnode.View{Netfilter: noNft == nil}.Take()
	case 2:
		whole = read(ts, args[0])
	default:
		err = fmt.Errorf("a pattern is wanted, or a snapshot and a pattern")
	}
	if err != nil {
		return nil, nil, err
	}
	pattern, err := regexp.Compile(args[len(args)-1])
	if err != nil {
		return nil, nil, fmt.Errorf("the last argument: %w", err)
	}
	return whole.Matching(pattern), whole, nil
}

// read is a snapshot that the story has taken. A plugin may have written one for it, too: any file with lines in it.
func read(ts *testscript.TestScript, file string) testnode.Snapshot {
	text := ts.ReadFile(file)
	if strings.TrimSpace(text) == "" {
		ts.Fatalf("the snapshot %s is empty: that is not a node", file)
	}
	return testnode.ParseSnapshot(text)
}
