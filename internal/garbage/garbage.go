// Package garbage finds what lost DELs leave and no record holds: host-local reservations, entries of the runtime's
// result cache, and what plugins put into netfilter, of attachments that are dead.
package garbage

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/netfilter"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// Item is one thing that belongs to an attachment, and whether that is live.
type Item struct {
	Key  attachment.Key  `json:"attachment"`
	Life attachment.Life `json:"life"`
	Why  string          `json:"why"`
	File string          `json:"file,omitempty"`
	// Reservation is set for reservations, Netfilter for what is in the kernel's netfilter; neither for cache entries.
	Reservation *attachment.Reservation `json:"reservation,omitempty"`
	Netfilter   *attachment.Netfilter   `json:"netfilter,omitempty"`
	piece       netfilter.Piece
}

// What names the thing.
func (it Item) What() string {
	if it.Netfilter != nil {
		return attachment.Resource{Kind: attachment.KindNetfilter, Netfilter: it.Netfilter}.String()
	}
	return it.File
}

// Finder looks around. Only what is provably dead is ever garbage: without a
// record, a cache entry's netns has to be gone from the runtime's own mount namespace.
type Finder struct {
	env     *reconcile.Env
	records map[owner]recorded
	past    map[owner]recorded // closed in this boot and here, the latest of each, with the addresses of all
	cache   map[owner]entry
	noCache error // what of the caches could not be read
	// inCache gives the interfaces that the cache knows of a container.
	inCache func(container string) []owner
	// containers are the interfaces that are known of each, once they were asked for.
	containers map[string][]owner
	// samePaths says that a netns path means here what it meant to the runtime.
	samePaths bool
}

type owner struct{ network, container, ifName string }

// recorded is what is used of a record.
type recorded struct {
	claim     attachment.Claim
	ips       []netip.Addr
	sameNode  bool
	never     bool // teardown is "never"
	grace     time.Duration
	lastDel   *attachment.Moment
	deadSince *attachment.Moment
}

func (f *Finder) recorded(r *attachment.Record) recorded {
	out := recorded{claim: r.Claim(), ips: r.Addresses(), sameNode: r.SameNode(f.env.Node), never: teardown.Mode(r.Settings.Teardown) == teardown.Never,
		grace: r.Settings.Grace, deadSince: r.DeadSince}
	if r.Del != nil {
		out.lastDel = &r.Del.Last
	}
	return out
}

// NewFinder reads the open records; what is in the runtime's caches was read before.
func NewFinder(env *reconcile.Env, tx *journal.Tx, c *Caches) (*Finder, error) {
	f := &Finder{env: env, records: map[owner]recorded{}, past: map[owner]recorded{}, cache: c.entries, inCache: c.of, noCache: c.err,
		samePaths: kernel.WithFirstProcess(env.Node.Mount)}
	err := tx.Each(func(r *attachment.Record) error {
		f.records[owner{r.Network, r.ContainerID, r.IfName}] = f.recorded(r)
		f.sawRuntime(r)
		return nil
	})
	_ = tx.History(func(r *attachment.Record) error { f.sawPast(r); return nil }) // one that is damaged tells nothing
	return f, errors.Join(err, f.noCache)
}

// sawPast learns from a closed record. The latest come first.
func (f *Finder) sawPast(r *attachment.Record) {
	f.sawRuntime(r)
	if !r.SameNode(f.env.Node) {
		return
	}
	o := owner{r.Network, r.ContainerID, r.IfName}
	past, there := f.past[o]
	if !there {
		past = f.recorded(r)
	} else {
		past.ips = append(past.ips, r.Addresses()...)
	}
	f.past[o] = past
}

// sawRuntime learns from a record where the runtime is that called the plugin: its paths mean the same here if it is
// in this very mount namespace, as on a node that is a container itself.
func (f *Finder) sawRuntime(r *attachment.Record) {
	if r.Node.Now.BootID == f.env.Node.Now.BootID && r.Node.SamePaths(f.env.Node) {
		f.samePaths = true
	}
}

// judge decides the life of a container's interface from the record or, without
// one, from the runtime's cache.
func (f *Finder) judge(o owner) (attachment.Life, string) {
	if r, ok := f.records[o]; ok {
		switch l := f.env.Life(r.claim); l {
		case attachment.Dead:
			return l, "recorded, and its netns and host link are gone"
		case attachment.Live:
			return l, "recorded, and it is there"
		default:
			return l, "recorded, and it could not be seen"
		}
	}
	e, ok := f.cache[o]
	if !ok {
		return attachment.Unknown, "neither a record nor the runtime's cache knows it"
	}
	if e.netns == "" {
		return attachment.Unknown, "not recorded, and its cache entry names no netns (libcni before 1.2)"
	}
	_, err := kernel.NamespaceAt(e.netns)
	switch {
	case strings.HasPrefix(e.netns, "/proc/"):
		return attachment.Unknown, "not recorded, and the process of its netns path may be another by now"
	case err == nil:
		return attachment.Live, "not recorded, and the netns of its cache entry is there"
	case !f.samePaths:
		return attachment.Unknown, "not recorded, and its netns path may mean something else here: the host itself is the place to run this"
	case errors.Is(err, fs.ErrNotExist) && isDir(filepath.Dir(e.netns)): // a plain file may be a mount that only the runtime sees
		return attachment.Dead, "not recorded, and the netns of its cache entry is gone"
	}
	return attachment.Unknown, "not recorded, and the netns of its cache entry cannot be read"
}

// isDir tells a netns that is gone from a place where netns are kept that is
// not to be seen from here, as in a pod.
func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
