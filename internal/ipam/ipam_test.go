package ipam

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

var mine = attachment.Key{Network: "net1", ContainerID: "c1", IfName: "eth0"}

func everything(all []attachment.Reservation) []attachment.Reservation { return all }

func ofMine(all []attachment.Reservation) []attachment.Reservation {
	return slices.DeleteFunc(all, func(r attachment.Reservation) bool { return !r.Of(mine) })
}

func store(t *testing.T, files map[string]string) Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "net1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, "net1", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Config{Type: HostLocal, DataDir: dir}
}

func names(t *testing.T, c Config) []string {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(c.DataDir, "net1"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		if f.Name() != "lock" {
			out = append(out, f.Name())
		}
	}
	return out
}

func TestReleaseIsExact(t *testing.T) {
	c := store(t, map[string]string{
		"10.1.0.2":           "c1\r\neth0",
		"10.1.0.3":           "c1\r\nnet1",  // another interface of the same container
		"10.1.0.4":           "c11\r\neth0", // an id that begins alike
		"10.1.0.5":           "c1",          // host-local's first format
		"10.1.0.6":           "",
		"10.1.0.7":           "c2\r\neth0",
		"fd00::2":            "c1\neth0\n",
		"last_reserved_ip.0": "10.1.0.2",
		"notes":              "c1\r\neth0",
	})
	released, err := c.Release("net1", LockWait, ofMine)
	if err != nil || len(released) != 3 {
		t.Fatalf("%v, %v", released, err)
	}
	want := []string{"10.1.0.3", "10.1.0.4", "10.1.0.6", "10.1.0.7", "last_reserved_ip.0", "notes"}
	if got := names(t, c); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	if released, err := c.Release("net1", LockWait, ofMine); err != nil || len(released) != 0 {
		t.Errorf("a second release: %v, %v", released, err)
	}
}

func TestSymlinksAreLeftAlone(t *testing.T) {
	c := store(t, map[string]string{"notes": "c1\r\neth0"})
	if err := os.Symlink("notes", filepath.Join(c.DataDir, "net1", "10.1.0.9")); err != nil {
		t.Fatal(err)
	}
	if released, err := c.Release("net1", LockWait, everything); err != nil || len(released) != 0 {
		t.Errorf("%v, %v", released, err)
	}
}

func TestNoDirectoryIsNoReservation(t *testing.T) {
	c := Config{Type: HostLocal, DataDir: t.TempDir()}
	if released, err := c.Release("net1", LockWait, everything); err != nil || released != nil {
		t.Errorf("%v, %v", released, err)
	}
	if files, _ := os.ReadDir(c.DataDir); len(files) != 0 {
		t.Errorf("made %v", files)
	}
}

// host-local chooses an address and writes its file under the lock: a release in between would be lost to it.
func TestReleaseWaitsForHostLocal(t *testing.T) {
	c := store(t, map[string]string{"10.1.0.2": "c1\r\neth0"})
	unlock, err := lock(filepath.Join(c.DataDir, "net1"), LockWait)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := c.Release("net1", LockWait, ofMine)
		done <- err
	}()
	waitForWaiter(t, filepath.Join(c.DataDir, "net1", "lock"))
	if got := names(t, c); len(got) != 1 {
		t.Errorf("released while the lock was held: %v", got)
	}
	unlock()
	if err := <-done; err != nil || len(names(t, c)) != 0 {
		t.Errorf("%v, left %v", err, names(t, c))
	}
}

// A stopped host-local must not keep the journal, which is locked while addresses are released.
func TestReleaseGivesUpWaiting(t *testing.T) {
	c := store(t, map[string]string{"10.1.0.2": "c1\r\neth0"})
	unlock, err := lock(filepath.Join(c.DataDir, "net1"), LockWait)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	released, err := c.Release("net1", LockWait, ofMine)
	if took := time.Since(begun); err == nil || len(released) != 0 || took > 2*LockWait {
		t.Errorf("after %s: %v, %v", took, released, err)
	}
	unlock()
	// The lost wait gives the lock back as soon as it gets it.
	if _, err := c.Release("net1", LockWait, ofMine); err != nil || len(names(t, c)) != 0 {
		t.Errorf("%v, left %v", err, names(t, c))
	}
}

// waitForWaiter returns when the kernel lists a blocked waiter on the file.
func waitForWaiter(t *testing.T, file string) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for !blocked(t, st.Ino) {
		if time.Now().After(deadline) {
			t.Fatal("nobody waits for the lock")
		}
		time.Sleep(time.Millisecond)
	}
}
