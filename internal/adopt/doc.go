// Package adopt makes records of pods that were there before backstop was: from the entries of the runtime's result
// cache and the kernel. What is not proven is not recorded; each thing that could not be has its reason.
package adopt

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
)

// Verdict says what becomes of one thing that was found.
type Verdict string

const (
	Adopt    Verdict = "adopt"    // can be recorded
	Adopted  Verdict = "adopted"  // is recorded now
	Recorded Verdict = "recorded" // was recorded before
	Other    Verdict = "other"    // of a network that backstop is not for
	Left     Verdict = "left"     // could not be adopted
)

// Item is an entry of a runtime's cache, or a network namespace that none explains.
type Item struct {
	Verdict Verdict         `json:"verdict"`
	Key     *attachment.Key `json:"attachment,omitempty"` // absent where nothing says it
	Netns   string          `json:"netns,omitempty"`
	File    string          `json:"file,omitempty"` // the cache entry
	Why     string          `json:"why,omitempty"`
	// Missing is what a later replay has to do without.
	Missing []string `json:"missing,omitempty"`
	// Resources are what was captured, as text.
	Resources []string `json:"resources,omitempty"`

	record *attachment.Record
	entry  []byte // as it was read
	netns  attachment.NamespaceID
}

// Name is what a person knows it by.
func (it Item) Name() string {
	switch {
	case it.Key != nil:
		return it.Key.String()
	case it.File != "":
		return it.File
	}
	return it.Netns
}

// Adopter looks around on one node.
type Adopter struct {
	Env      *reconcile.Env
	Host     *kernel.Handle
	Journal  *journal.Journal
	ConfDir  string
	Caches   []string // cache directories of runtimes, each with "results" in it
	NetnsDir string   // where network namespaces are mounted; "": none are looked at
	Network  string   // only this one's; "": all
	LockWait time.Duration
}

// Plan finds what can be adopted, and what cannot. Nothing is changed.
func (a *Adopter) Plan(ctx context.Context) ([]Item, error) {
	lists, err := a.lists()
	if err != nil {
		return nil, err
	}
	open, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	out, err := a.entries(lists, open)
	if err != nil {
		return nil, err
	}
	if a.Network == "" { // nothing says of which network a bare namespace is
		more, err := a.unexplained(open, out)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	slices.SortStableFunc(out, func(x, y Item) int { return strings.Compare(x.Name(), y.Name()) })
	return out, nil
}

// open reads the open records, and those that wait to be stored.
func (a *Adopter) open(ctx context.Context) (map[attachment.Key]*attachment.Record, error) {
	out := map[attachment.Key]*attachment.Record{}
	err := a.Journal.ViewWithin(ctx, a.LockWait, func(tx *journal.Tx) error {
		// One that cannot be decoded is found again at its own key, under the lock.
		_ = tx.Each(func(r *attachment.Record) error { out[r.Key] = r; return nil })
		return nil
	})
	_ = a.Journal.Waiting(func(r *attachment.Record, _ string) { out[r.Key] = r })
	return out, err
}
