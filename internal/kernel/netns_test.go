package kernel_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/testnode"
	"golang.org/x/sys/unix"
)

// The test goroutines must never be given the main thread: it cannot die, and /proc/self is its view.
func init() { runtime.LockOSThread() }

// netns is a network namespace that a test made. Programs run in it through at.
type netns struct {
	t    *testing.T
	path string // leads to it from any process while the test runs
	at   []string
}

// enterNode puts the test on a thread of its own in a new network namespace. The thread is never unlocked:
// it ends with the test's goroutine, and the namespace with it. Subtests run on other threads, so each enters its own.
func enterNode(t *testing.T) *netns {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces: run it as root")
	}
	outside := here(t)
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	if here(t) == outside {
		t.Fatal("unshare left the thread in the machine's own network namespace")
	}
	n := &netns{t: t, path: hold(t)}
	n.ip("link set lo up")
	return n
}

// newPod makes a namespace that nothing runs in.
func newPod(t *testing.T) *netns {
	t.Helper()
	made := make(chan string)
	go func() {
		runtime.LockOSThread() // for good, as above
		defer close(made)
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("make a pod's network namespace: %v", err)
			return
		}
		made <- hold(t)
	}()
	path, ok := <-made
	if !ok {
		t.FailNow()
	}
	n := &netns{t: t, path: path, at: []string{"nsenter", "--net=" + path}}
	n.ip("link set lo up")
	return n
}

// hold keeps the calling thread's namespace alive and gives a path to it.
func hold(t *testing.T) string {
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Errorf("open a network namespace: %v", err)
		return ""
	}
	t.Cleanup(func() { f.Close() })
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
}

func here(t *testing.T) string {
	t.Helper()
	s, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run starts ip or bridge with lines of their words in the namespace, and waits.
func (n *netns) run(program []string, lines string) ([]byte, error) {
	cmd := n.command(program, lines)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s\n%s%w: %s", strings.Join(program, " "), lines, err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

func (n *netns) command(program []string, lines string) *exec.Cmd {
	args := slices.Concat(n.at, program, []string{"-batch", "-"})
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.Stdin = strings.NewReader(lines)
	return cmd
}

// program is what runs a line: bridge where it begins with "fdb", else ip, whose -6 stands before the batch.
func program(line string) (args []string, rest string) {
	if strings.HasPrefix(line, "fdb ") {
		return []string{"bridge"}, line
	}
	if rest, six := strings.CutPrefix(line, "-6 "); six {
		return []string{"ip", "-6"}, rest
	}
	return []string{"ip"}, line
}

// ip runs lines that must succeed, neighbouring ones of one program together.
func (n *netns) ip(lines ...string) {
	n.t.Helper()
	for len(lines) > 0 {
		args, first := program(lines[0])
		batch, i := first+"\n", 1
		for ; i < len(lines); i++ {
			next, line := program(lines[i])
			if !slices.Equal(next, args) {
				break
			}
			batch += line + "\n"
		}
		if _, err := n.run(args, batch); err != nil {
			n.t.Fatal(err)
		}
		lines = lines[i:]
	}
}

// start runs many lines of ip beside the test; the answer is how it ended.
func (n *netns) start(lines string) <-chan error {
	n.t.Helper()
	cmd := n.command([]string{"ip"}, lines)
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended
}

// handle opens what is tested, in the calling thread's namespace.
func (n *netns) handle() *kernel.Handle {
	n.t.Helper()
	h, err := kernel.OpenHost()
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(h.Close)
	return h
}

// node reads where the calling thread is.
func (n *netns) node() attachment.Node {
	n.t.Helper()
	node, err := kernel.ReadNode()
	if err != nil {
		n.t.Fatal(err)
	}
	return node
}

// openPod enters a pod as backstop does.
func openPod(t *testing.T, path string, host attachment.Node) (*kernel.Handle, attachment.NamespaceID, error) {
	t.Helper()
	h, id, err := kernel.OpenPod(path, host)
	if err == nil {
		t.Cleanup(h.Close)
	}
	return h, id, err
}

// until waits for what the kernel does in its own time.
func until(t *testing.T, condition func() error) {
	t.Helper()
	if err := testnode.Until(10*time.Second, condition); err != nil {
		t.Fatal(err)
	}
}
