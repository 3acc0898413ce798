package journal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
)

// tree is everything below a directory: mode, owner, and content or link target.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		what := fi.Mode().String()
		switch {
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(b))
		case fi.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " " + target
		}
		out[path] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Whoever may write where the journal lies could have it write elsewhere, with
// root's rights.
func TestUnsafePathsAreRefusedAndLeftAlone(t *testing.T) {
	write := func(path string) error { return os.WriteFile(path, []byte("not ours"), 0o600) }
	for name, c := range map[string]struct {
		prepare func(root, dir, file string) error
		lockOK  bool // the lock can be had: only the file itself is bad
	}{
		"the file is a symlink": {func(root, dir, file string) error {
			return errors.Join(os.Mkdir(dir, 0o700), write(root+"/victim"), os.Symlink(root+"/victim", file))
		}, true},
		"the file is a symlink to nothing": {func(root, dir, file string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Symlink(root+"/none", file))
		}, true},
		"the file is a directory": {func(root, dir, file string) error { return os.MkdirAll(file, 0o700) }, true},
		"the file is a fifo": {func(root, dir, file string) error {
			return errors.Join(os.Mkdir(dir, 0o700), syscall.Mkfifo(file, 0o600))
		}, true},
		"the lock is a symlink": {func(root, dir, file string) error {
			return errors.Join(os.Mkdir(dir, 0o700), write(root+"/victim"), os.Symlink(root+"/victim", file+".lock"))
		}, false},
		"the lock is a symlink to nothing": {func(root, dir, file string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Symlink(root+"/none", file+".lock"))
		}, false},
		"the lock is a directory": {func(root, dir, file string) error { return os.MkdirAll(file+".lock", 0o700) }, false},
		"the lock is a fifo": {func(root, dir, file string) error {
			return errors.Join(os.Mkdir(dir, 0o700), syscall.Mkfifo(file+".lock", 0o600))
		}, false},
		"the directory is a symlink": {func(root, dir, file string) error {
			return errors.Join(os.Mkdir(root+"/elsewhere", 0o700), os.Symlink(root+"/elsewhere", dir))
		}, false},
		"the directory is a symlink to nothing": {func(root, dir, file string) error { return os.Symlink(root+"/none", dir) }, false},
		"the directory is a file":               {func(root, dir, file string) error { return write(dir) }, false},
		"everybody may write to the directory": {func(root, dir, file string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777|fs.ModeSticky))
		}, false},
		"a group may write to the directory": {func(root, dir, file string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o770))
		}, false},
		"the directory is another user's": {func(root, dir, file string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, 0))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := root + "/cni"
			j := At(dir + "/journal.db")
			if err := c.prepare(root, dir, j.Path()); err != nil {
				t.Fatal(err)
			}
			if c.lockOK {
				lock(t, j).Unlock() // the lock file is no change
			}
			before := tree(t, root)
			ran := func(*Tx) error { t.Error("it was used"); return nil }
			for what, err := range map[string]error{
				"update":   j.UpdateWithin(context.Background(), patience, ran),
				"view":     j.ViewWithin(context.Background(), patience, ran),
				"writable": j.Writable(),
			} {
				if !errors.Is(err, ErrUnsafe) {
					t.Errorf("%s: got %v, want ErrUnsafe", what, err)
				}
			}
			if after := tree(t, root); !reflect.DeepEqual(after, before) {
				t.Errorf("got %q\nwant %q", after, before)
			}
		})
	}
}

// What is made is root's alone, whatever the caller's umask.
func TestModes(t *testing.T) {
	for _, umask := range []int{0, 0o077} {
		was := syscall.Umask(umask)
		j := newJournal(t)
		put(t, j, rec("c1", "10.0.0.2", "veth1", 12))
		done, err := j.Exclusive("replay")
		syscall.Umask(was)
		if err != nil {
			t.Fatal(err)
		}
		done()
		got := map[string]string{}
		dir := filepath.Dir(j.Path())
		for _, name := range []string{".", "journal.db", "journal.db.lock", "journal.db.replay.lock"} {
			fi, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			got[name] = fmt.Sprintf("%o", fi.Mode().Perm())
		}
		want := map[string]string{".": "700", "journal.db": "600", "journal.db.lock": "600", "journal.db.replay.lock": "600"}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("umask %o: got %v, want %v", umask, got, want)
		}
	}
}

func TestADirectoryThatOthersMayReadIsUsedAsItIs(t *testing.T) {
	j := newJournal(t)
	dir := filepath.Dir(j.Path())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, j, rec("c1", "10.0.0.2", "veth1", 12))
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("now %v, %v", fi.Mode(), err)
	}
}

// STATUS asks on every poll of the kubelet: nothing may come of it, and a journal
// that is not there yet is one that an ADD would make.
func TestWritableMakesNothing(t *testing.T) {
	root := t.TempDir()
	j := At(root + "/a/b/journal.db")
	if err := j.Writable(); err != nil {
		t.Errorf("directories that are missing: %v", err)
	}
	if got := tree(t, root); len(got) != 1 {
		t.Errorf("there is %q", got)
	}
	put(t, j, rec("c1", "10.0.0.2", "veth1", 12))
	before := tree(t, root)
	other := lock(t, j)
	defer other.Unlock()
	if err := j.Writable(); err != nil {
		t.Errorf("while somebody is at work: %v", err)
	}
	if after := tree(t, root); !reflect.DeepEqual(after, before) {
		t.Errorf("got %q\nwant %q", after, before)
	}
}
