package kernel_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"golang.org/x/sys/unix"
)

func TestReadNode(t *testing.T) {
	n := enterNode(t)
	a, b := n.node(), n.node()
	stat := func(path string) attachment.NamespaceID {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		return attachment.NamespaceID{Dev: uint64(st.Dev), Ino: st.Ino}
	}
	if a.Netns != stat(n.path) || a.Netns == stat("/proc/self/ns/net") {
		t.Errorf("netns %v, the thread is in %v", a.Netns, stat(n.path))
	}
	if a.Mount != stat("/proc/thread-self/ns/mnt") {
		t.Errorf("mount namespace %v", a.Mount)
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || a.Now.BootID != strings.TrimSpace(string(id)) {
		t.Errorf("boot id %q, want %s (%v)", a.Now.BootID, id, err)
	}
	if a.Now.BootTime <= 0 || b.Now.BootTime < a.Now.BootTime || a.Now.Wall.IsZero() {
		t.Errorf("clocks: %+v, then %+v", a.Now, b.Now)
	}
	if other := newPod(t); stat(other.path) == a.Netns {
		t.Error("two namespaces with one id")
	}
}

// TestOpenPodRefuses everything that is not another network namespace, before it enters anything: acting inside the host's
// namespace because a path led there is what must not happen.
func TestOpenPodRefuses(t *testing.T) {
	n := enterNode(t)
	host := n.node()
	dir := t.TempDir()
	plain, fifo, link := filepath.Join(dir, "plain"), filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(plain, nil, 0o600), unix.Mkfifo(fifo, 0o600), os.Symlink(n.path, link)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"the host's own, by a recycled pid": {"/proc/thread-self/ns/net", kernel.ErrHostNetns},
		"the host's own, by a symlink":      {link, kernel.ErrHostNetns},
		"a plain file":                      {plain, kernel.ErrNotNetns},
		"a fifo, without waiting for it":    {fifo, kernel.ErrNotNetns},
		"a directory":                       {dir, kernel.ErrNotNetns},
		"a mount namespace":                 {"/proc/thread-self/ns/mnt", kernel.ErrNotNetns},
		"a pid namespace":                   {"/proc/thread-self/ns/pid", kernel.ErrNotNetns},
		"a process that is gone":            {"/proc/4194304/ns/net", fs.ErrNotExist},
		"nothing":                           {filepath.Join(dir, "missing"), fs.ErrNotExist},
		"no path":                           {"", fs.ErrNotExist},
	} {
		before := here(t)
		h, _, err := openPod(t, c.path, host)
		if h != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, h, err, c.want)
		}
		if here(t) != before {
			t.Fatalf("%s: the thread is in another namespace now", name)
		}
	}
	// A thread that somehow is not on the host must not act at all: what it calls gone may be there.
	elsewhere := host
	elsewhere.Netns.Ino++
	if h, _, err := openPod(t, newPod(t).path, elsewhere); h != nil || !errors.Is(err, kernel.ErrHostNetns) {
		t.Errorf("from a thread that is not in the recorded host namespace: %v, %v", h, err)
	}
}

func TestNamespaceAt(t *testing.T) {
	n, pod := enterNode(t), newPod(t)
	mnt, err := kernel.NamespaceAt("/proc/thread-self/ns/mnt")
	if err != nil || mnt == n.node().Netns {
		t.Errorf("a mount namespace: %v, %v", mnt, err)
	}
	_, id, err := openPod(t, pod.path, n.node())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := kernel.NamespaceAt(pod.path); got != id || err != nil || got.IsZero() {
		t.Errorf("the pod is %v by its path (%v), %v by entering it", got, err, id)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := kernel.NamespaceAt(plain); !got.IsZero() || !errors.Is(err, kernel.ErrNotNetns) {
		t.Errorf("a plain file: %v, %v", got, err)
	}
	if got, err := kernel.NamespaceAt(plain + "/x"); !got.IsZero() || err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path through a plain file is unreadable, not absent: %v, %v", got, err)
	}
}

// A handle stays in the namespace that it was opened in, while the thread is back on the host.
func TestOpenPodLeavesTheThreadOnTheHost(t *testing.T) {
	n, pod := enterNode(t), newPod(t)
	pod.ip("link add inside type ifb")
	n.ip("link add outside type ifb")
	before := here(t)
	in, _, err := openPod(t, pod.path, n.node())
	if err != nil {
		t.Fatal(err)
	}
	if here(t) != before {
		t.Fatal("the thread stayed in the pod")
	}
	for name, h := range map[string]*kernel.Handle{"inside": in, "outside": n.handle()} {
		for _, other := range []string{"inside", "outside"} {
			if l, err := h.LinkByName(other); err != nil || (l != nil) != (other == name) {
				t.Errorf("%s, seen from %s: %v, %v", other, name, l, err)
			}
		}
	}
}

// TestManyGoroutinesEnterPods uses the process's own host namespace, since goroutines run on any thread: it is only
// read. Each must find itself there again.
func TestManyGoroutinesEnterPods(t *testing.T) {
	host, err := kernel.ReadNode()
	if err != nil {
		t.Fatal(err)
	}
	at, pods := here(t), []*netns{newPod(t), newPod(t), newPod(t)}
	for i, p := range pods {
		p.ip([]string{"link add pod0 type ifb", "link add pod1 type ifb", "link add pod2 type ifb"}[i])
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 20 {
				h, _, err := kernel.OpenPod(pods[i%3].path, host)
				if err != nil {
					t.Error(err)
					return
				}
				l, err := h.LinkByName([]string{"pod0", "pod1", "pod2"}[i%3])
				if err != nil || l == nil {
					t.Errorf("goroutine %d is not in its pod: %v, %v", i, l, err)
				}
				h.Close()
				if now, err := os.Readlink("/proc/thread-self/ns/net"); err != nil || now != at {
					t.Errorf("goroutine %d is in %s (%v), not in %s", i, now, err, at)
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	strayed := 0
	for _, task := range tasks {
		for i, p := range pods {
			a, _ := kernel.NamespaceAt("/proc/self/task/" + task.Name() + "/ns/net")
			if b, err := kernel.NamespaceAt(p.path); err == nil && a == b {
				t.Errorf("thread %s stayed in pod %d", task.Name(), i)
				strayed++
			}
		}
	}
}
