package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	bolt "go.etcd.io/bbolt"
)

const page = 4096

// sound gives a journal with some records, and its file.
func sound(t *testing.T) (*Journal, []byte) {
	t.Helper()
	j := newJournal(t)
	var rs []*attachment.Record
	for i := range 40 {
		rs = append(rs, rec(fmt.Sprintf("c%d", i), fmt.Sprintf("10.0.0.%d", i), "veth1", 12+i))
	}
	put(t, j, rs...)
	put(t, j, rs[:7]...)
	b, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	return j, b
}

// use reads and then writes, each twice: what the first try left (a lock, a
// mapping) must not get into the way of the second.
func use(j *Journal) map[string]error {
	out := map[string]error{}
	for i := range 2 {
		out[fmt.Sprintf("view %d", i)] = j.ViewWithin(context.Background(), patience, func(tx *Tx) error {
			_, err := tx.Due(at(1e6), 100)
			return errors.Join(err, tx.Each(func(*attachment.Record) error { return nil }), tx.History(func(*attachment.Record) error { return nil }))
		})
		out[fmt.Sprintf("update %d", i)] = j.UpdateWithin(context.Background(), patience, func(tx *Tx) error {
			return tx.Put(rec("c1", "10.0.0.99", "veth99", 99))
		})
	}
	return out
}

func TestAFileThatIsNoSoundJournalIsRefusedAndLeftAlone(t *testing.T) {
	rnd := rand.NewChaCha8([32]byte{7})
	random := func(n int) []byte {
		b := make([]byte, n)
		_, _ = rnd.Read(b)
		return b
	}
	foreign := func(fn func(*bolt.Tx) error) func(*testing.T, []byte) []byte {
		return func(t *testing.T, _ []byte) []byte { return bboltFile(t, fn) }
	}
	schema := func(v []byte) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket(bucketMeta)
			return errors.Join(err, b.Put(keySchema, v))
		}
	}
	for name, c := range map[string]struct {
		make func(t *testing.T, sound []byte) []byte
		want error
	}{
		"nothing":                                {func(*testing.T, []byte) []byte { return nil }, ErrDamaged},
		"one byte":                               {func(*testing.T, []byte) []byte { return []byte{0} }, ErrDamaged},
		"a page of zeros":                        {func(*testing.T, []byte) []byte { return make([]byte, page) }, ErrDamaged},
		"zeros":                                  {func(_ *testing.T, b []byte) []byte { return make([]byte, len(b)) }, ErrDamaged},
		"text":                                   {func(*testing.T, []byte) []byte { return []byte(`{"records":[]}` + "\n") }, ErrDamaged},
		"random bytes":                           {func(_ *testing.T, b []byte) []byte { return random(len(b)) }, ErrDamaged},
		"random first pages":                     {func(_ *testing.T, b []byte) []byte { return append(random(2*page), b[2*page:]...) }, ErrDamaged},
		"random after them":                      {func(_ *testing.T, b []byte) []byte { return append(bytes.Clone(b[:2*page]), random(40*page)...) }, ErrDamaged},
		"cut in the first page":                  {func(_ *testing.T, b []byte) []byte { return b[:page/2] }, ErrDamaged},
		"cut behind it":                          {func(_ *testing.T, b []byte) []byte { return b[:page] }, ErrDamaged},
		"cut in the second":                      {func(_ *testing.T, b []byte) []byte { return b[:page+page/2] }, ErrDamaged},
		"cut behind the second":                  {func(_ *testing.T, b []byte) []byte { return b[:2*page] }, ErrDamaged},
		"somebody else's":                        {foreign(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("io.containerd")); return err }), ErrForeign},
		"no schema version":                      {foreign(func(tx *bolt.Tx) error { _, err := tx.CreateBucket(bucketMeta); return err }), ErrDamaged},
		"odd schema version":                     {foreign(schema([]byte("1"))), ErrDamaged},
		"a schema version that no program wrote": {foreign(schema([]byte{0, 1, 0, 1})), ErrDamaged},
		"the name of a bucket spoilt": {func(_ *testing.T, b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("meta\x00"), []byte("mfta\x00"))
		}, ErrDamaged},
		"names that no program gave": {func(t *testing.T, b []byte) []byte {
			meta := (&pages{b: b}).meta()
			root := int(order.Uint64(meta[16:])) * page
			for i := range int(order.Uint16(b[root+10:])) { // each bucket's name is taken from where others begin
				order.PutUint32(b[root+pageHeader+i*elementSize+4:], 400)
			}
			return b
		}, ErrDamaged},
		"newer schema":       {foreign(schema(binary.BigEndian.AppendUint32(nil, SchemaVersion+1))), ErrNewer},
		"schema and no more": {foreign(schema(binary.BigEndian.AppendUint32(nil, SchemaVersion))), ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			j, good := sound(t)
			bad := c.make(t, good)
			if err := os.WriteFile(j.Path(), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			for what, err := range use(j) {
				if !errors.Is(err, c.want) {
					t.Errorf("%s: got %v, want %v", what, err, c.want)
				}
			}
			if n := descriptors(t, j.Path()); n != 0 {
				t.Errorf("%d descriptors of the file are left open", n)
			}
			if after, err := os.ReadFile(j.Path()); err != nil || !bytes.Equal(after, bad) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

// descriptors counts those of this process that are open on a file.
func descriptors(t *testing.T, path string) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(links) == 0 {
		t.Fatalf("%d descriptors, %v", len(links), err)
	}
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && target == path {
			n++
		}
	}
	return n
}

func bboltFile(t *testing.T, fn func(*bolt.Tx) error) []byte {
	t.Helper()
	path := t.TempDir() + "/db"
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A file that lost its end is whole or damaged: it never reads as one with fewer
// records.
func TestATruncatedJournalNeverReadsAsASmallerOne(t *testing.T) {
	j, good := sound(t)
	damaged := 0
	for n := 2 * page; n <= 40*page; n += page / 2 {
		if err := os.WriteFile(j.Path(), good[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		records := 0
		err := j.ViewWithin(context.Background(), patience, func(tx *Tx) error {
			return tx.Each(func(*attachment.Record) error { records++; return nil })
		})
		switch {
		case err == nil && records != 40:
			t.Errorf("cut to %d bytes: %d records and no error", n, records)
		case errors.Is(err, ErrDamaged):
			damaged++
		case err != nil:
			t.Errorf("cut to %d bytes: %v, want ErrDamaged", n, err)
		}
	}
	if damaged == 0 {
		t.Error("no cut did any damage: the file is smaller than this test believes")
	}
}

// bbolt panics, and the mapped file faults, over pages that do not fit together:
// neither may end the plugin, which would fail a DEL.
func TestScrambledPagesNeverPanic(t *testing.T) {
	j, good := sound(t)
	const seed = 11
	rnd := rand.New(rand.NewPCG(seed, seed))
	damaged := 0
	for range 40 {
		bad := bytes.Clone(good[:32*page])
		for range 1 + rnd.IntN(4) {
			at := 2*page + rnd.IntN(len(bad)-2*page-page)
			for i := range 1 + rnd.IntN(64) {
				bad[at+i] = byte(rnd.Uint32())
			}
		}
		if err := os.WriteFile(j.Path(), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for what, err := range use(j) {
			if errors.Is(err, ErrBusy) {
				t.Fatalf("seed %d: %s: %v: a former try kept the file", seed, what, err)
			}
			if errors.Is(err, ErrDamaged) {
				damaged++
			}
		}
	}
	if damaged == 0 {
		t.Errorf("seed %d: nothing was found to be damaged", seed)
	}
}
