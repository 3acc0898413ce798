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
	Mount NamespaceID `json:"mount"` // the process's mount namespace: whether paths mean the same
}
