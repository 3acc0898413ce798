package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// intro says on what the figures were taken.
func intro() string {
	return fmt.Sprintf(`# What backstop costs

Written by `+"`make bench BENCH=\"-write ../docs/benchmarks.md\"`"+` on %s: %s, %d cores, Linux %s, Go %s, containernetworking/plugins
v1.10.0, journal on %s. All figures of a table are of one run, contestants in turn. The ratios are what to compare; milliseconds are this
machine's. A run on another machine prints the same tables.
`, time.Now().Format("2006-01-02"), cpu(), runtime.NumCPU(), release(), strings.TrimPrefix(runtime.Version(), "go"), fileSystem("/var/lib/cni"))
}

func cpu() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for l := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(l, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return runtime.GOARCH
}

func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "?"
	}
	return unix.ByteSliceToString(u.Release[:])
}

func fileSystem(path string) string {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return "?"
	}
	switch s.Type {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs"
	}
	return fmt.Sprintf("a file system of type %#x", s.Type)
}
