package reconcile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"golang.org/x/sys/unix"
)

// TestLife is the table of who counts as live, with paths of every sort and links in a fake kernel. Any namespace
// file stands for the pod's.
func TestLife(t *testing.T) {
	const pod = "/proc/self/ns/uts"
	podID, err := kernel.NamespaceAt(pod)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plain, fifo := filepath.Join(dir, "plain"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.WriteFile(plain, nil, 0o600), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	missing, unreadable := filepath.Join(dir, "missing"), plain+"/netns"
	veth := attachment.Link{Index: 9, Name: "eni1", Kind: "veth", MAC: "02:00:00:00:00:09"}
	const itsVeth = "link add eni1 index 9 address 02:00:00:00:00:09 type veth peer name eth0 netns POD"

	for name, c := range map[string]struct {
		netns  string
		id     attachment.NamespaceID // the pod's if not said
		links  []attachment.Link
		del    bool
		node   func(*attachment.Node) // of the record
		kernel []string
		broken bool
		want   attachment.Life
	}{
		"its namespace is there":                     {netns: pod, want: attachment.Live},
		"its path leads to another one":              {netns: "/proc/self/ns/ipc", want: attachment.Dead},
		"its path is gone":                           {netns: missing, want: attachment.Dead},
		"its path is a plain file":                   {netns: plain, want: attachment.Dead},
		"its path is a fifo":                         {netns: fifo, want: attachment.Dead},
		"its path cannot be read":                    {netns: unreadable, want: attachment.Unknown},
		"it had no path":                             {netns: "", want: attachment.Unknown},
		"its namespace was never read":               {netns: missing, id: attachment.NamespaceID{Ino: 1}, want: attachment.Dead},
		"a DEL came":                                 {netns: pod, del: true, want: attachment.Dead},
		"a DEL came, and its veth is there":          {netns: pod, del: true, links: []attachment.Link{veth}, kernel: []string{itsVeth}, want: attachment.Live},
		"its path is gone, its veth is there":        {netns: missing, links: []attachment.Link{veth}, kernel: []string{itsVeth}, want: attachment.Live},
		"its path and its veth are gone":             {netns: missing, links: []attachment.Link{veth}, want: attachment.Dead},
		"it had no path, and its veth is gone":       {netns: "", links: []attachment.Link{veth}, want: attachment.Dead},
		"its path cannot be read, its veth is gone":  {netns: unreadable, links: []attachment.Link{veth}, want: attachment.Dead},
		"the next pod has its veth's index":          {netns: missing, links: []attachment.Link{veth}, kernel: []string{"link add eni2 index 9 address 02:00:00:00:00:0a type veth peer name eth0 netns POD"}, want: attachment.Dead},
		"the next pod has its index, all its MAC":    {netns: missing, links: []attachment.Link{veth}, kernel: []string{"link add eni2 index 9 address 02:00:00:00:00:09 type veth peer name eth0 netns POD", "link add eni3 address 02:00:00:00:00:09 type veth peer name eth0 netns POD"}, want: attachment.Dead},
		"the next pod has its veth's name":           {netns: missing, links: []attachment.Link{veth}, kernel: []string{"link add eni1 index 10 type veth peer name eth0 netns POD"}, want: attachment.Dead},
		"its veth was renamed":                       {netns: missing, links: []attachment.Link{veth}, kernel: []string{itsVeth, "link set eni1 name eni7"}, want: attachment.Live},
		"another kind has its index and name":        {netns: missing, links: []attachment.Link{veth}, kernel: []string{"link add eni1 index 9 type ifb"}, want: attachment.Dead},
		"the kernel cannot be asked":                 {netns: missing, links: []attachment.Link{veth}, broken: true, want: attachment.Unknown},
		"the kernel cannot be asked, nor the path":   {netns: unreadable, links: []attachment.Link{veth}, broken: true, want: attachment.Unknown},
		"of another boot, whatever there is":         {netns: pod, links: []attachment.Link{veth}, kernel: []string{itsVeth}, node: func(n *attachment.Node) { n.Now.BootID = "other" }, want: attachment.Dead},
		"of another host namespace":                  {netns: pod, links: []attachment.Link{veth}, kernel: []string{itsVeth}, node: func(n *attachment.Node) { n.Netns.Ino++ }, want: attachment.Dead},
		"recorded elsewhere, its path is gone here":  {netns: missing, node: func(n *attachment.Node) { n.Mount.Ino++ }, want: attachment.Unknown},
		"recorded elsewhere, a plain file here":      {netns: plain, node: func(n *attachment.Node) { n.Mount.Ino++ }, want: attachment.Unknown},
		"its mount namespace's inode given out anew": {netns: missing, node: func(n *attachment.Node) { n.Root++ }, want: attachment.Unknown},
		"the same, a plain file here":                {netns: plain, node: func(n *attachment.Node) { n.Root++ }, want: attachment.Unknown},
		"the same, another namespace at its path":    {netns: "/proc/self/ns/ipc", node: func(n *attachment.Node) { n.Root++ }, want: attachment.Unknown},
		"no mount has an id, and its path is gone":   {netns: missing, node: func(n *attachment.Node) { n.Root = 0 }, want: attachment.Unknown},
		"recorded elsewhere, its namespace is there": {netns: pod, node: func(n *attachment.Node) { n.Mount.Ino++ }, want: attachment.Live},
		"recorded elsewhere, its veth is gone":       {netns: missing, links: []attachment.Link{veth}, node: func(n *attachment.Node) { n.Mount.Ino++ }, want: attachment.Dead},
		"recorded elsewhere, its veth is there":      {netns: missing, links: []attachment.Link{veth}, kernel: []string{itsVeth}, node: func(n *attachment.Node) { n.Mount.Ino++ }, want: attachment.Live},
	} {
		t.Run(name, func(t *testing.T) {
			f := kernel.NewFake()
			for _, line := range c.kernel {
				if err := f.IP(line); err != nil {
					t.Fatal(err)
				}
			}
			if c.broken {
				f.Break("LinkByIndex", kernel.ErrInterrupted)
			}
			b := newBench(t, f)
			claim := attachment.Claim{State: attachment.Attached, Node: b.Node, Netns: c.netns, NetnsID: podID, DelSeen: c.del, Links: c.links}
			if !c.id.IsZero() {
				claim.NetnsID = c.id
			}
			if c.node != nil {
				c.node(&claim.Node)
			}
			if got := b.Life(claim); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// An agent in a pod sees another file system: that it cannot find a path must not make anybody dead.
func TestLifeFromAnotherMountNamespace(t *testing.T) {
	onNode(t, func(t *testing.T, b *bench) {
		b.addPod("pod", "eni1", "10.0.0.5", 2)
		withVeth := b.capture("pod", `{"interfaces":[{"name":"eni1"}]}`)
		b.ip("netns add bare")
		without := b.capture("bare", `{}`)
		at := func(e *Env, want attachment.Life, rs ...*attachment.Record) {
			t.Helper()
			for _, r := range rs {
				if got := e.Life(r.Claim()); got != want {
					t.Errorf("%s is %s, want %s", r.ContainerID, got, want)
				}
			}
		}
		at(b.Env, attachment.Live, withVeth, without)

		b.elsewhere(func(e *Env) {
			at(e, attachment.Live, withVeth)   // by its veth
			at(e, attachment.Unknown, without) // only its path could tell
		})
		b.ip("netns del bare")
		b.kill("pod", "eni1")
		b.elsewhere(func(e *Env) {
			at(e, attachment.Dead, withVeth) // a veth goes with its namespace
			at(e, attachment.Unknown, without)
		})
		at(b.Env, attachment.Dead, withVeth, without)
	})
}

// elsewhere runs body in a mount namespace in which /run is empty, on a thread that is thrown away.
func (b *bench) elsewhere(body func(*Env)) {
	b.t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good
		defer close(done)
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			done <- err
			return
		}
		if err := unix.Mount("none", "/run", "tmpfs", 0, ""); err != nil {
			done <- err
			return
		}
		here, err := kernel.ReadNode()
		if err != nil || here.Mount == b.Node.Mount {
			done <- errors.Join(err, errors.New("still in the same mount namespace"))
			return
		}
		body(&Env{Node: here, Kernel: b.Kernel, Log: b.Log})
	}()
	if err := <-done; err != nil {
		b.t.Fatal(err)
	}
}
