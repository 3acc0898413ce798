package reconcile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/journal"
)

// A power cut brings back the entry of the spool whose removal was not on disk yet. What the journal has of the attachment
// since then stands.
func TestAnEntryThatComesBackUndoesNoDel(t *testing.T) {
	ago := func(d time.Duration) func(*attachment.Moment) { return func(m *attachment.Moment) { m.BootTime += d } }
	same := ago(0)
	for name, c := range map[string]struct {
		now  func(*bench, *attachment.Record) // what the journal has by now; nil for nothing
		add  func(*attachment.Moment)         // the entry's moment
		want attachment.State
	}{
		"nothing came since":            {nil, same, attachment.Attached},
		"its DEL, owed":                 {func(b *bench, r *attachment.Record) { b.deferred(r).State = attachment.Owed }, same, attachment.Owed},
		"its DEL, deferred":             {func(b *bench, r *attachment.Record) { b.deferred(r) }, same, attachment.Deferred},
		"its DEL, closed":               {func(b *bench, r *attachment.Record) { b.deferred(r).State = attachment.Closed }, same, attachment.Closed},
		"closed without a DEL":          {func(_ *bench, r *attachment.Record) { r.State = attachment.Closed }, same, attachment.Closed},
		"it is an ADD after that DEL":   {func(b *bench, r *attachment.Record) { b.deferred(r).State = attachment.Owed }, ago(time.Hour), attachment.Attached},
		"it is an ADD after the end":    {func(b *bench, r *attachment.Record) { b.deferred(r).State = attachment.Closed }, ago(time.Hour), attachment.Attached},
		"a DEL, and the ADD in another": {func(b *bench, r *attachment.Record) { b.deferred(r).State = attachment.Owed }, func(m *attachment.Moment) { m.BootID = "later" }, attachment.Attached},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, kernel.NewFake())
			entry := b.record("a")
			c.add(&entry.Node.Now)
			dir, err := b.j.Keep(entry)
			if err != nil {
				t.Fatal(err)
			}
			if c.now != nil {
				r := b.record("a")
				c.now(b, r)
				b.put(r)
			}
			if err := b.TakeIn(t.Context(), b.j, patience); err != nil {
				t.Fatal(err)
			}
			if r := b.get("a"); r == nil || r.State != c.want {
				t.Errorf("%+v, want %s", r, c.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("in %s: %v, %v", filepath.Base(dir), left, err)
			}
			if err := b.j.ViewWithin(t.Context(), patience, func(tx *journal.Tx) error {
				open, err := tx.Get(entry.Key)
				if err == nil && (open == nil) != (c.want == attachment.Closed) {
					t.Errorf("open is %+v", open)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
