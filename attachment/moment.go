package attachment

import "time"

// Moment is a point in time that survives clock steps: BootTime counts from the
// boot that BootID names (CLOCK_BOOTTIME, clock_gettime(2)); Wall is for people.
type Moment struct {
	BootID   string        `json:"bootID"`
	BootTime time.Duration `json:"bootTime"`
	Wall     time.Time     `json:"wall"`
}

// Since gives how long m was before now. A moment of an earlier boot is
// infinitely long ago: every grace is over.
func (m Moment) Since(now Moment) time.Duration {
	if m.BootID != now.BootID {
		return time.Duration(1<<63 - 1)
	}
	return now.BootTime - m.BootTime
}

// NotBefore reports whether m is o or came after it, in the same boot: moments of two boots have no order.
func (m Moment) NotBefore(o Moment) bool { return m.BootID == o.BootID && m.BootTime >= o.BootTime }

// Add gives the moment that comes d later in the same boot.
func (m Moment) Add(d time.Duration) Moment {
	m.BootTime += d
	m.Wall = m.Wall.Add(d)
	return m
}

// NamespaceID identifies a namespace while it exists: device and inode of its
// nsfs file (namespaces(7)). The kernel reuses inodes of dead namespaces.
type NamespaceID struct {
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
}

// IsZero reports that no namespace was read.
func (n NamespaceID) IsZero() bool { return n == NamespaceID{} }

// Node is the place and time a process acts in: what a record must agree with
// before anything it names may be removed.
type Node struct {
	Now   Moment      `json:"now"`
	Netns NamespaceID `json:"netns"` // the host's network namespace
	Mount NamespaceID `json:"mount"` // the process's mount namespace
	// Root is the id of the mount at / that is never given out again (STATX_MNT_ID_UNIQUE, statx(2)). Before Linux 6.8 it is
	// FirstRoot where the machine's first process is, and else 0.
	Root uint64 `json:"root,omitempty"`
}

// FirstRoot stands for the mount at / of the machine's first process, whose mount namespace lasts as long as the boot.
// The kernel's own ids are greater (fs/namespace.c: from 2^31 on).
const FirstRoot = 1

// SamePaths reports whether a path that was recorded at n leads to the same here. The inode of
// the mount namespace alone could be another's by now: an agent's pod may get that of a runtime that was restarted.
func (n Node) SamePaths(here Node) bool {
	return n.Mount == here.Mount && n.Root == here.Root && here.Root != 0
}
