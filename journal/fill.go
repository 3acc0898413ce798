package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// initialSize is what a new file grows to at once: room for some hundred records.
const initialSize = 4 << 20

// fill writes zeros over the part of the file that was never used, from used on,
// when the file has holes there. bbolt grows a file by truncate(2), and then every commit pays for
// allocating its blocks: with them in place it takes two thirds of the time. The lock is held. It is a matter
// of speed alone, so a failure (a full disk) is left for the commit to meet.
func fill(path string, used int64) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Blocks*512 >= st.Size-(used+1)/2 {
		return // what is used is allocated: if that is all, at least half of it is missing
	}
	// Where blocks are compressed or copied on write (btrfs, zfs) zeros allocate nothing, now or ever.
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil || (fs.Type != unix.EXT4_SUPER_MAGIC && fs.Type != unix.XFS_SUPER_MAGIC && fs.Type != unix.TMPFS_MAGIC) {
		return
	}
	f, err := openNoFollow(path, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	zeros := make([]byte, 1<<20)
	for at := used; at < st.Size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), st.Size-at)], at); err != nil {
			return
		}
	}
	_ = f.Sync()
}
