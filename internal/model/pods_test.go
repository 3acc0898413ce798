package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"runtime"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// slot is a pod as its owner sees it: one sandbox after the other under the same name, as a StatefulSet's pod.
type slot struct {
	name      string
	nets      []*network
	sandboxes []*sandbox
}

// sandbox is one try at the pod: a network namespace, and an attachment to each of the slot's networks.
type sandbox struct {
	id    string
	slot  *slot
	path  string
	alive bool // the netns is there
	atts  []*att
}

// att is what the model knows of an attachment.
type att struct {
	attachment.Key
	net          *network
	sb           *sandbox
	ips          []netip.Addr
	table        uint32
	link         string
	index        int       // of the host link; 0 when there is none
	furtherNames [2]string // on the host and in the pod
	further      []int     // host links of further interfaces: the last is the present one's
	result       json.RawMessage
	need         map[string]bool // what it must have in the kernel while it lives
	had          int             // how much that was at the ADD: with less it may have lost what it had to a primary
	found        map[string]bool // what of it was there before its ADD
	made         map[string]bool // what its primary ever made for it: what backstop may have recorded
	window       bool            // its primary's ADD is done, backstop's is not
	known        bool            // backstop's ADD is done
	deleted      bool            // a DEL came since
	renamed      bool            // one came under another network's name: nothing of it goes before it is dead
	cut          bool            // a primary took its host link, as the next pod's of the same name does
	cached       bool            // the runtime has its entry
	holds        bool            // its IPAM has its addresses in its name
	forgotten    bool            // its cache entry went although its DEL failed, as CRI-O's do
}

// live says that nothing may take from it what it needs. Without its host link it has no network left: where its netns
// cannot be seen it counts as dead by that.
func (a *att) live() bool { return a.stands() && !a.cut }

// stands says that no DEL came and the netns is there.
func (a *att) stands() bool { return (a.window || a.known) && !a.deleted && a.sb.alive }

func (a *att) owner() string { return a.ContainerID + "/" + a.IfName }

// current is the slot's last sandbox, nil before the first.
func (s *slot) current() *sandbox {
	if len(s.sandboxes) == 0 {
		return nil
	}
	return s.sandboxes[len(s.sandboxes)-1]
}

// makeNetns makes a namespace at a path.
func makeNetns(path string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return fmt.Errorf("make netns: %w", err)
	}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Mount("/proc/thread-self/ns/net", path, "none", unix.MS_BIND, "")
		}
		made <- err
	}()
	if err := <-made; err != nil {
		return fmt.Errorf("make netns %s: %w", path, err)
	}
	return nil
}

// inNetns runs fn with a netlink handle in the namespace at a path.
func inNetns(path string, fn func(*netlink.Handle) error) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open netns %s: %w", path, err)
	}
	defer unix.Close(fd)
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter netns %s: %w", path, err)
			return
		}
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err == nil {
			err = fn(h)
			h.Close()
		}
		done <- err
	}()
	return <-done
}

// dropNetns takes a namespace's name away; the kernel takes the rest when nobody is in it.
func dropNetns(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		err = nil
	}
	if rerr := os.Remove(path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

// kill removes the sandbox's namespace, as a runtime does after a DEL or a crashed node agent without one.
func (s *sandbox) kill() error {
	if !s.alive {
		return nil
	}
	s.alive = false
	return dropNetns(s.path)
}

// newSandbox makes the pod's next one.
func (w *world) newSandbox(s *slot) (*sandbox, error) {
	w.serial++
	sb := &sandbox{id: fmt.Sprintf("%02x%s%d", (w.serial*37)%256, s.name, w.serial), slot: s, alive: true}
	sb.path = "/run/netns/" + sb.id
	if err := makeNetns(sb.path); err != nil {
		return nil, err
	}
	for i, n := range s.nets {
		a := &att{Key: attachment.Key{Network: n.name, ContainerID: sb.id, IfName: fmt.Sprintf("eth%d", i)}, net: n, sb: sb, need: map[string]bool{}, found: map[string]bool{}, made: map[string]bool{}}
		sb.atts = append(sb.atts, a)
		w.atts[a.Key] = a
	}
	s.sandboxes = append(s.sandboxes, sb)
	return sb, nil
}

// attachments are all that the run ever had, in an order that does not change.
func (w *world) attachments() (out []*att) {
	for _, s := range w.slots {
		for _, sb := range s.sandboxes {
			out = append(out, sb.atts...)
		}
	}
	return out
}

// living are those that are live.
func (w *world) living() []*att {
	return slices.DeleteFunc(w.attachments(), func(a *att) bool { return !a.live() })
}
