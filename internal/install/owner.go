package install

import (
	"io/fs"
	"os"
	"syscall"
)

// own gives a new file the owner of another.
func own(f *os.File, like fs.FileInfo) error {
	if st, ok := like.Sys().(*syscall.Stat_t); ok {
		return f.Chown(int(st.Uid), int(st.Gid))
	}
	return nil
}
