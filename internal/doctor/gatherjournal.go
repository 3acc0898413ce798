package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
	"golang.org/x/sys/unix"
)

// journal reads one journal with everything around it.
func (x *gathering) journal(ctx context.Context, j *Journal) {
	store := journal.At(j.Path)
	x.disk(j)
	x.spools(j, store)
	j.Aside, _ = filepath.Glob(j.Path + ".corrupt-*")
	if _, err := os.Lstat(j.Path); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			x.unread(err)
		}
		x.mode(j, filepath.Dir(j.Path), true)
		return
	}
	j.There = true
	x.mode(j, filepath.Dir(j.Path), true)
	x.mode(j, j.Path, false)
	var open []*attachment.Record
	err := store.ViewWithin(ctx, x.LockWait, func(tx *journal.Tx) error {
		if err := x.Env.AtHome(tx); err != nil {
			x.elsewhere = true
		}
		if bad := tx.Each(func(r *attachment.Record) error { open = append(open, r); return nil }); bad != nil {
			j.Undecoded = bad.Error()
		}
		_ = tx.History(func(r *attachment.Record) error { // one that is damaged tells nothing
			if _, there := x.past[r.Key]; !there {
				x.past[r.Key] = r
			}
			return nil
		})
		return nil
	})
	for _, r := range open { // not under the lock: the kernel is asked for each
		x.record(r)
	}
	switch {
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		x.unread(err)
	case errors.Is(err, journal.ErrUnsafe):
		j.Wrong = append(j.Wrong, err.Error())
	case err != nil:
		j.Err, j.Advice = err.Error(), journal.Advice(err)
		j.Damaged, j.Newer = errors.Is(err, journal.ErrDamaged), errors.Is(err, journal.ErrNewer)
	}
}

func (x *gathering) record(r *attachment.Record) {
	now := x.Env.Now()
	x.records[r.Key] = r
	if r.Node.Now.BootID == now.BootID && r.Node.SamePaths(x.Env.Node) {
		x.samePaths = true
	}
	x.settings = append(x.settings, place{r.Network, r.Settings})
	out := Record{Key: r.Key, State: r.State, Life: x.Env.Life(r.Claim()), SinceDel: -1, CacheDir: r.Settings.RuntimeCacheDir,
		Never: teardown.Mode(r.Settings.Teardown) == teardown.Never}
	if r.Del != nil {
		out.SinceDel = r.Del.Last.Since(now)
	}
	if out.Overdue = r.Due.Since(now); out.Overdue == math.MaxInt64 {
		out.Overdue = now.BootTime // since the boot at most
	}
	x.f.Records = append(x.f.Records, out)
}

// inMemory are the file systems that a boot empties (statfs(2)).
var inMemory = map[int64]string{unix.TMPFS_MAGIC: "tmpfs", unix.RAMFS_MAGIC: "ramfs"}

func (x *gathering) disk(j *Journal) {
	dir := filepath.Dir(j.Path)
	for dir != "/" {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = filepath.Dir(dir)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		x.unread(fmt.Errorf("statfs %s: %w", dir, err))
		return
	}
	j.FileSystem = inMemory[int64(st.Type)]
	j.Size, j.Free = st.Blocks*uint64(st.Bsize), st.Bavail*uint64(st.Bsize)
	j.Nodes, j.FreeNodes = st.Files, st.Ffree
}

// mode notes what owner and mode give to others.
func (x *gathering) mode(j *Journal, path string, dir bool) {
	fi, err := os.Lstat(path)
	if err != nil {
		return // what is not there is made with the right ones
	}
	switch {
	case fi.Mode().Type() == fs.ModeSymlink:
		j.Wrong = append(j.Wrong, path+" is a symlink")
		return
	case fi.IsDir() != dir:
		j.Wrong = append(j.Wrong, path+" is of another type")
		return
	case fi.Mode().Perm()&0o077 != 0:
		j.Wrong = append(j.Wrong, fmt.Sprintf("%s has mode %04o", path, fi.Mode().Perm()))
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
		j.Wrong = append(j.Wrong, fmt.Sprintf("%s belongs to user %d", path, st.Uid))
	}
}

// spools lists what waits for the journal.
func (x *gathering) spools(j *Journal, store *journal.Journal) {
	for _, dir := range store.SpoolDirs() {
		names, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			x.unread(err)
			continue
		}
		x.mode(j, dir, true)
		for _, n := range names {
			fi, err := n.Info()
			if err != nil {
				continue // taken in
			}
			j.Waiting = append(j.Waiting, Waiting{File: filepath.Join(dir, n.Name()), Age: time.Since(fi.ModTime()), Bad: strings.HasSuffix(n.Name(), ".bad")})
		}
	}
}
