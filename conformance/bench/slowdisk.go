package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// syncDelay is what each sync costs on the slow disk: that of a busy spinning disk, or a cloud volume without credits.
const syncDelay = 25 * time.Millisecond

// slowDisk shows the group commit apart from the rest.
func slowDisk(n *node, r *report, _ options) error {
	if err := n.beforeBursts(); err != nil {
		return err
	}
	unmount, err := mountSlow("/var/lib/cni")
	if err != nil {
		return err
	}
	defer unmount()
	t := burstTable("Pods that start at once, on a slow disk",
		fmt.Sprintf("As above, on a file system (FUSE) in which each fsync and fdatasync takes %v longer. What the queue and backstop differ in is the group commit: those\n", syncDelay)+
			"who wait are stored with the commit of the one that has the lock.")
	if err := r.burst(&t, n, 64, 2, 0, 0); err != nil {
		return err
	}
	r.add(t)
	return nil
}

// mountSlow puts a slow view of a new directory on path.
func mountSlow(path string) (unmount func(), err error) {
	below, err := os.MkdirTemp(path, "slow.")
	if err != nil {
		return nil, err
	}
	// What is below is reached by its descriptor: its path is covered.
	dir, err := os.Open(below)
	if err != nil {
		return nil, err
	}
	root := &fs.LoopbackRoot{Path: fmt.Sprintf("/proc/self/fd/%d", dir.Fd())}
	top := &slowNode{fs.LoopbackNode{RootData: root}}
	root.RootNode = top
	server, err := fs.Mount(path, top, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "slow"}})
	if err != nil {
		return nil, fmt.Errorf("mounting a slow disk: %w", err)
	}
	return func() { _ = server.Unmount(); dir.Close(); os.RemoveAll(below) }, nil
}

// slowNode is a file or directory that takes its time to sync.
type slowNode struct{ fs.LoopbackNode }

func (n *slowNode) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &slowNode{fs.LoopbackNode{RootData: n.RootData}}
}

// Fsync is that of the file below, later. Directories have none there.
func (n *slowNode) Fsync(ctx context.Context, f fs.FileHandle, flags uint32) syscall.Errno {
	time.Sleep(syncDelay)
	if file, ok := f.(fs.FileFsyncer); ok {
		return file.Fsync(ctx, flags)
	}
	return 0
}
