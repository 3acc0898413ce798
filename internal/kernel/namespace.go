package kernel

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

var (
	// ErrNotNetns says that a path does not lead to a network namespace.
	ErrNotNetns = errors.New("not a network namespace")
	// ErrHostNetns says that a pod's path leads to the namespace backstop itself
	// runs in, as a recycled /proc/<pid>/ns/net does.
	ErrHostNetns = errors.New("is the host's own network namespace")
)

// ReadNode says where and when the calling thread acts. Call it with the thread locked
// and before anything entered a pod: /proc/self/ns/net is the main thread's, which may then be the pod's.
func ReadNode() (attachment.Node, error) {
	var n attachment.Node
	var err error
	if n.Now, err = Now(); err != nil {
		return n, err
	}
	if n.Netns, err = NamespaceAt("/proc/thread-self/ns/net"); err != nil {
		return n, fmt.Errorf("host network namespace: %w", err)
	}
	if n.Mount, err = NamespaceAt("/proc/thread-self/ns/mnt"); err != nil {
		return n, fmt.Errorf("own mount namespace: %w", err)
	}
	var st unix.Statx_t
	switch {
	case unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_MNT_ID_UNIQUE, &st) == nil && st.Mask&unix.STATX_MNT_ID_UNIQUE != 0:
		n.Root = st.Mnt_id
	case WithFirstProcess(n.Mount):
		n.Root = attachment.FirstRoot
	}
	return n, nil
}

// initialPIDs is the inode of the machine's first PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const initialPIDs = 0xEFFFFFFC

// WithFirstProcess reports whether a mount namespace is that of the machine's first process. In a pod, which has its
// own PIDs, /proc/1 is the pod's.
func WithFirstProcess(mount attachment.NamespaceID) bool {
	pids, err := NamespaceAt("/proc/thread-self/ns/pid")
	if err != nil || pids.Ino != initialPIDs {
		return false
	}
	first, err := NamespaceAt("/proc/1/ns/mnt")
	return err == nil && first == mount
}

// Now reads boot id, boot clock and wall clock.
func Now() (attachment.Moment, error) {
	id, err := bootID()
	if err != nil {
		return attachment.Moment{}, err
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return attachment.Moment{}, fmt.Errorf("read boot clock: %w", err)
	}
	return attachment.Moment{BootID: id, BootTime: time.Duration(ts.Nano()), Wall: time.Now().UTC().Round(0)}, nil
}

// bootID outlives no process: it is read once.
var bootID = sync.OnceValues(func() (string, error) {
	const path = "/proc/sys/kernel/random/boot_id"
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	b := make([]byte, 64)
	n, err := unix.Read(fd, b)
	if err != nil {
		return "", &os.PathError{Op: "read", Path: path, Err: err}
	}
	return strings.TrimSpace(string(b[:n])), nil
})

// NamespaceAt identifies the namespace at a path. ErrNotNetns stands for any
// path that exists and is no namespace file; a missing path is an fs.ErrNotExist.
func NamespaceAt(path string) (attachment.NamespaceID, error) {
	// O_NONBLOCK: a path from outside may be a fifo.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return attachment.NamespaceID{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	return namespaceOf(fd, path)
}

func namespaceOf(fd int, path string) (attachment.NamespaceID, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return attachment.NamespaceID{}, fmt.Errorf("statfs %s: %w", path, err)
	}
	if fs.Type != unix.NSFS_MAGIC {
		return attachment.NamespaceID{}, fmt.Errorf("%s: %w", path, ErrNotNetns)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return attachment.NamespaceID{}, fmt.Errorf("stat %s: %w", path, err)
	}
	return attachment.NamespaceID{Dev: uint64(st.Dev), Ino: st.Ino}, nil
}

// OpenHost binds a handle to the calling thread's network namespace.
func OpenHost() (*Handle, error) { return newHandle() }

// OpenPod binds a handle to the network namespace at path, unless that is the
// host's (ErrHostNetns) or none (ErrNotNetns). The thread is back in the host's when it returns.
func OpenPod(path string, host attachment.Node) (*Handle, attachment.NamespaceID, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, attachment.NamespaceID{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	id, err := namespaceOf(fd, path)
	if err != nil {
		return nil, id, err
	}
	if id == host.Netns {
		return nil, id, fmt.Errorf("%s: %w", path, ErrHostNetns)
	}
	var h *Handle
	err = inside(fd, host.Netns, func() error {
		var err error
		h, err = newHandle()
		return err
	})
	if err != nil {
		return nil, id, fmt.Errorf("enter %s: %w", path, err)
	}
	h.host = host.Netns
	return h, id, nil
}

// hostNSID asks by which id the pod's namespace knows the host's, to follow a
// veth to its peer; -1 when it does not. The kernel gives the id out with the first reading of such a veth.
func (h *Handle) hostNSID() int { return h.NSID("/proc/thread-self/ns/net", h.host) }

// inside runs fn with the thread in another network namespace; its own must be
// the host's.
func inside(fd int, host attachment.NamespaceID, fn func() error) error {
	runtime.LockOSThread()
	own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("open own network namespace: %w", err)
	}
	defer unix.Close(own)
	if id, err := namespaceOf(own, "own network namespace"); err != nil || id != host {
		runtime.UnlockOSThread()
		return fmt.Errorf("this thread is not in the host's network namespace (%w)", errors.Join(err, ErrHostNetns))
	}
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		if errors.Is(err, unix.EINVAL) {
			err = fmt.Errorf("%w: %w", ErrNotNetns, err) // a namespace of another type
		}
		return err
	}
	err = fn()
	if back := unix.Setns(own, unix.CLONE_NEWNET); back != nil {
		// Nothing this thread does from here on would happen on the host: it stays locked and dies
		// with its goroutine.
		return fmt.Errorf("return from pod: %w", back)
	}
	runtime.UnlockOSThread()
	return err
}
