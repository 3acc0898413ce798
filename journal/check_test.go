package journal

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// Whatever is wrong in an index is named, and made right from the records; what is no index is not touched.
func TestCheckAndRebuildIndex(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(*bolt.Tx) error
		want string
	}{
		"nothing": {harm: func(*bolt.Tx) error { return nil }},
		"an entry is missing": {func(tx *bolt.Tx) error {
			return tx.Bucket(bucketByLink).Delete(append(linkPrefix("veth1", 12), "net/c0/eth0"...))
		}, "an index lacks"},
		"an entry too many": {func(tx *bolt.Tx) error {
			return tx.Bucket(bucketDue).Put([]byte("12345678net/none/eth0"), nil)
		}, "which no record makes"},
		"an old claim": {func(tx *bolt.Tx) error {
			k, _ := tx.Bucket(bucketByIP).Cursor().First()
			return tx.Bucket(bucketByIP).Put(k, []byte("{}"))
		}, "an old claim"},
		"a record": {func(tx *bolt.Tx) error {
			return tx.Bucket(bucketAttachments).Put([]byte("net/bad/eth0"), []byte("{"))
		}, `entry "net/bad/eth0"`},
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := sound(t)
			whole := contents(t, j, derived...)
			s := lock(t, j)
			err := s.with(s.j.path, false, func(db *bolt.DB) error { return db.Update(c.harm) })
			s.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			check := func() (found []error) {
				view(t, j, func(tx *Tx) error { found = tx.Check(); return nil })
				return found
			}
			if found := fmt.Sprint(check()); (c.want == "") != (found == "[]") || !strings.Contains(found, c.want) {
				t.Errorf("found %s, want %q", found, c.want)
			}
			update(t, j, func(tx *Tx) error {
				if n, _ := tx.RebuildIndex(); n != 40 {
					t.Errorf("%d records are indexed, want 40", n)
				}
				return nil
			})
			if now := contents(t, j, derived...); fmt.Sprint(now) != fmt.Sprint(whole) {
				t.Errorf("made anew:\n%v\nwas\n%v", now, whole)
			}
			if found := check(); len(found) > 0 && name != "a record" {
				t.Errorf("after it: %v", found)
			}
		})
	}
}

// What bbolt panicked over by itself is told as damage.
func TestCheckDoesNotSpeakOfPanic(t *testing.T) {
	j, b := sound(t)
	for id := range 2 { // in the headers of both meta pages, which nothing else reads
		order.PutUint64(b[id*page:], 77)
	}
	if err := os.WriteFile(j.Path(), b, 0o600); err != nil {
		t.Fatal(err)
	}
	var wrong []error
	view(t, j, func(tx *Tx) error { wrong = tx.Check(); return nil })
	if len(wrong) == 0 || strings.Contains(errors.Join(wrong...).Error(), "panic") {
		t.Errorf("got %v, want damage without that word", wrong)
	}
}
