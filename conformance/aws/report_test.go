package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode"
)

var write = flag.Bool("write", false, "write report.md instead of comparing it")

const (
	rowEnv  = "BACKSTOP_AWS_ROW"
	modeEnv = "BACKSTOP_AWS_MODE"
)

var modes = []string{"", "unreachable", "always"}

// TestMain plays one row where the environment names it: the test has started this program again, in a node.
func TestMain(m *testing.M) {
	name := os.Getenv(rowEnv)
	switch {
	case name == "" && os.Getenv(umlEnv) != "":
		os.Exit(playBranches())
	case name == "":
		os.Exit(m.Run())
	}
	for _, r := range slices.Concat(rows, branches) {
		if r.title() == name {
			o, err := play(r, os.Getenv(modeEnv))
			if err == nil {
				err = json.NewEncoder(os.Stdout).Encode(o)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	fmt.Fprintf(os.Stderr, "no row is called %q\n", name)
	os.Exit(2)
}

// TestReport plays every row without backstop and with it in both modes. With it nothing may stay, and the report must
// be the one that is kept.
func TestReport(t *testing.T) {
	p, begun := programs(t), time.Now()
	all := make([][]outcome, len(rows))
	t.Run("rows", func(t *testing.T) {
		for i, r := range rows {
			all[i] = make([]outcome, len(modes))
			for m, mode := range modes {
				t.Run(r.title()+"/"+mode, func(t *testing.T) {
					t.Parallel()
					o, err := inNode(t.Context(), r, mode, p.Environment()...)
					if err != nil {
						t.Fatal(err)
					}
					judge(t, r, mode, o)
					all[i][m] = o
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	now := report(rows, all) + branchReport(t, p)
	fmt.Printf("%d situations, each without backstop and with it in two modes: %.0f s\n", len(rows)+len(branches), time.Since(begun).Seconds())
	compare(t, now)
}

// programs are what a row runs.
func programs(t *testing.T) testnode.Programs {
	const makes = "make conformance-aws"
	p, err := testnode.FindPrograms(
		testnode.Built{Dir: "bin", Command: makes, Holds: []string{"aws-cni", "egress-cni", "ipamd"}},
		testnode.Built{Dir: "../bin", Command: makes, Holds: []string{"cnitool"}},
		testnode.BuiltBackstop("../.."),
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// inNode plays a row in a node of its own: this program, started again there.
func inNode(ctx context.Context, r row, mode string, env ...string) (o outcome, err error) {
	var out, log bytes.Buffer
	err = testnode.Node{}.Exec(ctx, testnode.Command{
		Args: []string{os.Args[0]}, Stdout: &out, Stderr: &log,
		Env: append([]string{rowEnv + "=" + r.title(), modeEnv + "=" + mode}, env...),
	})
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &o)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, log.String())
	}
	return o, err
}

// judge holds what has to be true of every row.
func judge(t *testing.T, r row, mode string, o outcome) {
	if len(o.Lost) > 0 {
		t.Errorf("the node has lost %q", o.Lost)
	}
	if mode == "" || r.unrecorded {
		return
	}
	if len(o.Settled) > 0 {
		t.Errorf("with backstop there stays %q", o.Settled)
	}
	for _, said := range o.Shown {
		if strings.HasPrefix(said, swept) || !r.hurts && !strings.Contains(said, "leave by ens5,") {
			t.Errorf("with backstop: %s", said)
		}
	}
}

func compare(t *testing.T, now string) {
	const file = "report.md"
	if *write {
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	kept, err := os.ReadFile(file)
	if err != nil || string(kept) != now {
		t.Errorf("%s is not what came of it (%v); `make conformance-aws` writes it:\n%s", file, err, now)
	}
}
