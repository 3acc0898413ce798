package model

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// world is a node and the plain map of what is in it.
type world struct {
	mu         sync.Mutex // primaries of replays come by another goroutine
	nl         *netlink.Handle
	self       string // this program
	nets       []*network
	slots      []*slot
	atts       map[attachment.Key]*att
	bystanders map[string]int    // what belongs to nobody here, and how often it is there
	foreign    []foreign         // those of them that an operation made
	before     testnode.Snapshot // the node before the first pod, as ip shows it
	uplink     int
	bridge     int
	serial     int // of names that are used once
	boot       int
	trace      []string
	traceMu    sync.Mutex
	lost       []string // what a replay should not have done
	control    net.Listener
	met        map[attachment.Key]bool // records that the last ADD met
	said       string                  // by the last sweep, replay and gc
	settleTime time.Duration           // within which everything has to come to rest
}

func (w *world) note(format string, args ...any) {
	w.traceMu.Lock() // a replay's primary notes, too
	defer w.traceMu.Unlock()
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// forgive takes from the needs what went between two listings by a primary's hand: of everybody or, when one is
// given, of that attachment alone.
func (w *world) forgive(before, after listing, only *att) {
	for text := range before.count {
		if after.has(text) {
			continue
		}
		for _, a := range w.atts {
			if only == nil || a == only {
				a.cut = a.cut || a.need[text] && before.items[text].kind == "link"
				delete(a.need, text)
			}
		}
		if only == nil && after.count[text] < w.bystanders[text] {
			w.bystanders[text] = after.count[text]
		}
	}
}

// bootIDPath is bound over with a file, so that the node can reboot.
const (
	bootIDPath = "/proc/sys/kernel/random/boot_id"
	bootIDFile = "/run/model/boot_id"
)

// newWorld furnishes an empty node: ENIs with their tables, a bridge, an uplink, and bystanders that look like what
// pods have.
func newWorld(seed uint64) (*world, error) {
	w := &world{atts: map[attachment.Key]*att{}, nets: networks()}
	var err error
	if w.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, err
	}
	if w.self, err = os.Executable(); err != nil {
		return nil, err
	}
	w.begin(seed)
	if err := errors.Join(w.furnish(), w.dressBase()); err != nil {
		return nil, fmt.Errorf("furnish the node: %w", err)
	}
	if w.before, err = (testnode.View{}).Take(); err != nil {
		return nil, err
	}
	base, err := list()
	w.bystanders = base.count
	return w, err
}

// furnish makes the files of a node that never saw a pod.
func (w *world) furnish() error {
	for _, dir := range []string{"/run/model", "/run/netns", cacheDir, "/var/log", confDir} {
		if err := empty(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"backstop", "backstopctl", primaryType} {
		if err := os.Symlink(w.self, filepath.Join(programs, name)); err != nil {
			return err
		}
	}
	for _, n := range w.nets {
		n.up, n.refuses, n.reserved = false, false, nil
		if !n.hostLocal {
			n.reserved = map[string][]addr{}
		}
		if err := errors.Join(os.MkdirAll(n.dir(), 0o755), n.start(), os.WriteFile(filepath.Join(confDir, n.name+".conflist"), n.list(), 0o600)); err != nil {
			return err
		}
	}
	if err := w.writeBootID(); err != nil {
		return err
	}
	if err := unix.Mount(bootIDFile, bootIDPath, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind a boot id: %w", err)
	}
	var err error
	if w.control, err = net.Listen("unix", controlPath); err != nil {
		return err
	}
	go w.serve(w.control)
	return nil
}

// end lets go of what a run holds outside the node's files and kernel.
func (w *world) end() {
	for _, n := range w.nets {
		n.stop()
	}
	w.control.Close()
	_ = unix.Unmount(bootIDPath, unix.MNT_DETACH)
	w.nl.Close()
}

func (w *world) writeBootID() error {
	return os.WriteFile(bootIDFile, fmt.Appendf(nil, "11111111-2222-3333-4444-%012d\n", w.boot), 0o600)
}

// empty removes what is in a directory. What is mounted there goes first.
func empty(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if at := strings.Fields(line)[1]; strings.HasPrefix(at, dir+"/") {
			_ = unix.Unmount(at, unix.MNT_DETACH)
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, n := range names {
		if err := os.RemoveAll(filepath.Join(dir, n.Name())); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o755)
}
