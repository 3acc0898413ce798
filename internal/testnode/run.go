package testnode

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// insideEnv tells the test binary that it runs inside a node, for which test, and in which network namespace the
// machine is: a variable left over from elsewhere must not make a test work on the machine itself.
const insideEnv = "BACKSTOP_TESTNODE"

// Run runs body inside a throw-away node. See Node.Run.
func Run(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	Node{}.Run(t, body)
}

// Run runs body inside a throw-away node: it starts this test binary again in one, for the calling test alone, and
// reports that run's outcome as the caller's. What the test does before Run happens on the machine and once more in
// the node, so it should only compute. A node that cannot be made fails the test.
func (n Node) Run(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if inside(t) {
		body(t)
		return
	}
	outside, err := netns()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = n.Exec(t.Context(), Command{
		Args:   append([]string{os.Args[0]}, childFlags(t)...),
		Env:    []string{insideEnv + "=" + outside + " " + t.Name()},
		Stdout: &out,
		Stderr: &out,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if err := passed(t.Name(), out.String()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log("in its node:\n" + out.String())
}

// inside reports whether the process already is in the node that Run made for this test.
func inside(t *testing.T) bool {
	t.Helper()
	outside, name, ok := strings.Cut(os.Getenv(insideEnv), " ")
	if !ok || name != t.Name() {
		return false
	}
	here, err := netns()
	if err != nil {
		t.Fatal(err)
	}
	if here == outside {
		t.Fatalf("%s is set, but this is still the machine's own network namespace: unset it", insideEnv)
	}
	return true
}

func netns() (string, error) {
	ns, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return "", fmt.Errorf("reading this thread's network namespace: %w", err)
	}
	return ns, nil
}

// childFlags are the test binary's flags inside the node: exactly this test, and an end before the caller's own
// deadline, so that a hanging test still shows where it hangs.
func childFlags(t *testing.T) []string {
	args := []string{"-test.run=" + exactly(t.Name()), "-test.v=true", "-test.count=1"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	if deadline, ok := t.Deadline(); ok {
		const margin = 5 * time.Second
		args = append(args, "-test.timeout="+max(time.Until(deadline)-margin, time.Second).String())
	}
	flag.Visit(func(f *flag.Flag) { // the test's own flags
		if !strings.HasPrefix(f.Name, "test.") {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	return args
}

// exactly is the -run pattern that names one test and nothing else.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// passed makes sure from the verbose output that the test ran inside the node and passed there. The exit code alone
// is no proof: it is 0 too when no test matched, or when the test skipped itself.
func passed(test, output string) error {
	verdict := regexp.MustCompile(`(?m)^\s*--- (\w+): ` + regexp.QuoteMeta(test) + ` \(`)
	found := verdict.FindStringSubmatch(output)
	switch {
	case found == nil:
		return fmt.Errorf("%s did not run inside its node", test)
	case found[1] != "PASS":
		return fmt.Errorf("%s inside its node: %s, a pass is wanted", test, found[1])
	}
	return nil
}
