package journal

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func blocks(t *testing.T, path string) (allocated, size int64) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512, st.Size
}

// sparse writes b with holes where it has pages of zeros.
func sparse(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(int64(len(b))); err != nil {
		t.Fatal(err)
	}
	for at := 0; at+page <= len(b); at += page {
		if p := b[at : at+page]; !bytes.Equal(p, make([]byte, page)) {
			if _, err := f.WriteAt(p, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestFillWritesOverNothingThatIsUsed(t *testing.T) {
	path := t.TempDir() + "/f"
	b := append(bytes.Repeat([]byte("used"), 3*page/4), make([]byte, 2<<20)...)
	sparse(t, path, b)
	fill(path, 3*page)
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(after, b) {
		t.Errorf("%d bytes of other content, %v; want the %d there were", len(after), err, len(b))
	}
	if a, n := blocks(t, path); a < n {
		t.Errorf("%d of %d bytes are allocated", a, n)
	}
}

// Every change asks: what has no holes must cost nothing.
func TestFillLeavesAFileWithoutHolesAlone(t *testing.T) {
	path := t.TempDir() + "/f"
	long := time.Unix(1700000000, 0)
	if err := errors.Join(os.WriteFile(path, make([]byte, 1<<20), 0o600), os.Chtimes(path, long, long)); err != nil {
		t.Fatal(err)
	}
	fill(path, 3*page)
	if fi, err := os.Stat(path); err != nil || !fi.ModTime().Equal(long) {
		t.Errorf("it was written (%v)", err)
	}
}

// Each commit into a hole would pay for allocating its blocks.
func TestAJournalWithHolesIsFilledByTheNextChange(t *testing.T) {
	j, good := sound(t)
	if err := os.Remove(j.Path()); err != nil {
		t.Fatal(err)
	}
	sparse(t, j.Path(), good)
	if a, n := blocks(t, j.Path()); a >= n/2 {
		t.Fatalf("%d of %d bytes are allocated before: no holes to fill", a, n)
	}
	put(t, j, rec("c99", "10.0.0.99", "veth99", 99))
	if a, n := blocks(t, j.Path()); a < n {
		t.Errorf("%d of %d bytes are allocated", a, n)
	}
	rebuilt(t, j, "after filling")
	view(t, j, func(tx *Tx) error {
		n, err := ids(tx.Due(at(3600), 100))
		if err != nil || len(n) != 41 {
			t.Errorf("%d records, %v; want 41", len(n), err)
		}
		return nil
	})
}
