package aws

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

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
		if r.name == name {
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
	path := programs(t)
	all := make([][]outcome, len(rows))
	t.Run("rows", func(t *testing.T) {
		var mu sync.Mutex
		for i, r := range rows {
			all[i] = make([]outcome, len(modes))
			for m, mode := range modes {
				t.Run(r.name+"/"+mode, func(t *testing.T) {
					t.Parallel()
					o, err := inNode(t, path, r.name, mode)
					if err != nil {
						t.Fatal(err)
					}
					judge(t, r, mode, o)
					mu.Lock()
					defer mu.Unlock()
					all[i][m] = o
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	compare(t, report(rows, all)+branchReport(t, path))
}

// programs gives a PATH with everything that a row runs.
func programs(t *testing.T) string {
	var dirs []string
	for dir, has := range map[string]string{"bin": "aws-cni", "../bin": "cnitool", "../../bin": "backstop"} {
		abs, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(abs, has)); err != nil {
			t.Fatalf("run `make conformance-aws` in the project's top directory: %v", err)
		}
		dirs = append(dirs, abs)
	}
	return strings.Join(dirs, ":")
}

func inNode(t *testing.T, path, row, mode string) (o outcome, err error) {
	var out, log bytes.Buffer
	err = testnode.Node{}.Exec(t.Context(), testnode.Command{
		Args: []string{os.Args[0]}, Stdout: &out, Stderr: &log,
		Env: []string{rowEnv + "=" + row, modeEnv + "=" + mode, "CNI_PATH=" + path, "PATH=" + path + ":" + os.Getenv("PATH") + ":/usr/sbin:/sbin"},
	})
	if err != nil {
		return o, fmt.Errorf("%w\n%s", err, log.String())
	}
	return o, json.Unmarshal(out.Bytes(), &o)
}

// judge holds what has to be true of every row.
func judge(t *testing.T, r row, mode string, o outcome) {
	if len(o.Lost) > 0 {
		t.Errorf("the node has lost %q", o.Lost)
	}
	if mode == "" || r.unrecorded {
		return
	}
	if len(o.Settled) > 0 || len(o.Held) > 0 {
		t.Errorf("with backstop there stays %q, and the datastore holds %q", o.Settled, o.Held)
	}
	if !r.hurts && len(o.Shown) > 0 && !strings.HasPrefix(o.Shown[0], "the new pod's packets leave by ens5,") {
		t.Errorf("%q", o.Shown)
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
