package attachment

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// RecordVersion is the version of a record's JSON. Readers accept older ones;
// a newer one is left alone.
const RecordVersion = 1

// State is where a record is in its life; journal.Move holds the transitions.
type State string

const (
	Attached State = "attached" // ADD was seen, no DEL yet
	Deferred State = "deferred" // DEL was seen and left to the primary; a sweep looks again
	Tearing  State = "tearing"  // backstop decided to remove; not known to have finished
	Owed     State = "owed"     // the node is clean, the primary has not acknowledged
	Closed   State = "closed"   // nothing is left to do: in the history
)

// Record is what the journal holds of an attachment.
//
//easyjson:json
type Record struct {
	Version int `json:"version"`
	Key
	State State `json:"state"`

	Node       Node            `json:"node"` // where and when it was recorded
	Netns      string          `json:"netns,omitempty"`
	NetnsID    NamespaceID     `json:"netnsID"`
	CNIVersion string          `json:"cniVersion,omitempty"`
	CNIArgs    string          `json:"cniArgs,omitempty"`
	CNIPath    string          `json:"cniPath,omitempty"`
	IPs        []netip.Addr    `json:"ips"`
	PrevResult json.RawMessage `json:"prevResult,omitempty"`
	Resources  []Resource      `json:"resources"`     // on the node
	Pod        []Resource      `json:"pod,omitempty"` // inside the pod: for CHECK and people, never removed
	// Found is what looked like the attachment's at its ADD and was left to another record, see teardown.Newcomer.
	Found    []Resource `json:"found,omitempty"`
	Settings Settings   `json:"settings"`

	DeadSince *Moment `json:"deadSince,omitempty"` // first seen dead without any DEL
	Del       *Del    `json:"del,omitempty"`
	Replay    *Replay `json:"replay,omitempty"`
	// Claimed says that the last teardown left what a live attachment claimed, or one that only the kernel knew.
	Claimed bool `json:"claimed,omitempty"`
	// Spared says that the last teardown left interfaces to the plugins that are called next.
	Spared bool `json:"spared,omitempty"`
	// Released says that the ipam key's plugin gave the addresses back.
	Released  bool    `json:"released,omitempty"`
	Attempts  int     `json:"attempts,omitempty"`  // teardowns tried
	LastError string  `json:"lastError,omitempty"` // of the last teardown or replay
	Due       Moment  `json:"due"`                 // when a sweep should look at it
	Events    []Event `json:"events,omitempty"`
}

// Settings is the part of the configuration that a later sweep needs, as it was
// at the last ADD or DEL: then no conflist has to exist any more.
type Settings struct {
	Teardown        string          `json:"teardown"` // plugin configuration: unreachable, always, never
	Probe           []string        `json:"probe,omitempty"`
	ProbeTimeout    time.Duration   `json:"probeTimeout"`
	Grace           time.Duration   `json:"grace"`
	EscalateAfter   int             `json:"escalateAfter"`
	RuntimeCacheDir string          `json:"runtimeCacheDir"`
	IPAM            json.RawMessage `json:"ipam,omitempty"`
}

// Del is what is known of the DELs that came for an attachment.
type Del struct {
	Count int    `json:"count"` // of those that did not come at once with another
	First Moment `json:"first"`
	Last  Moment `json:"last"`
	// Under is the network whose name the last DEL came under, where that is not the record's and the attachment was
	// not dead: the network was renamed, or another network's ADD for the same container failed.
	Under string `json:"under,omitempty"`
	// Lost says that the runtime's cache entry had gone before this DEL, with one that the primary was away for: that it is
	// not there says nothing of a later one.
	Lost bool `json:"lost,omitempty"`
	// Refused says that no DEL could have finished: the primary was away.
	Refused bool `json:"refused,omitempty"`
}

// Replay is what it takes to run the rest of the list later: libcni's cache
// entry as it was at DEL (list, arguments, result) and where the plugins are. CRI-O deletes the entry even when DEL
// fails, and no runtime keeps CNI_PATH.
type Replay struct {
	CacheFile  string          `json:"cacheFile,omitempty"`
	CacheEntry json.RawMessage `json:"cacheEntry,omitempty"`
	CNIPath    string          `json:"cniPath,omitempty"`
	BlockedBy  string          `json:"blockedBy,omitempty"`
}

// Event is one line of an attachment's story.
type Event struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// maxEvents bounds a record's story: a DEL repeated for ever must not grow it.
const maxEvents = 32

// Note adds a line to the record's story.
func (r *Record) Note(now Moment, format string, args ...any) {
	r.Events = append(r.Events, Event{At: now.Wall, What: fmt.Sprintf(format, args...)})
	if n := len(r.Events) - maxEvents; n > 0 {
		// the first line, the ADD, is worth keeping
		r.Events = slices.Delete(r.Events, 1, 1+n)
	}
}

// Addresses gives the attachment's addresses and those that its own rules are
// for: a superseded ADD may have had others.
func (r *Record) Addresses() []netip.Addr {
	out := slices.Clone(r.IPs)
	for _, x := range r.Resources {
		if x.Rule == nil || x.Share != Own {
			continue
		}
		for _, a := range x.Rule.Addresses() {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// Doubtful reports whether no DEL is known to have been meant for this attachment.
func (r *Record) Doubtful() bool { return r.Del != nil && r.Del.Under != "" }

// OwnLinks gives the links that exist for this attachment alone.
func (r *Record) OwnLinks() []Link {
	var out []Link
	for _, x := range r.Resources {
		if x.Link != nil && x.Share == Own {
			out = append(out, *x.Link)
		}
	}
	return out
}

// OwnLink reports whether the device with this index is the attachment's own.
func (r *Record) OwnLink(index int) bool {
	return slices.ContainsFunc(r.OwnLinks(), func(l Link) bool { return l.Index == index })
}

// RuleNames gives the names of links that own rules are for.
func (r *Record) RuleNames() []string {
	var out []string
	for _, x := range r.Resources {
		if x.Rule == nil || x.Share != Own {
			continue
		}
		for _, n := range []string{x.Rule.IifName, x.Rule.OifName} {
			if n != "" && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// BareNames gives those that no own link has: the link was gone when the record was made, or was never the
// attachment's alone.
func (r *Record) BareNames() []string {
	return slices.DeleteFunc(r.RuleNames(), func(n string) bool {
		return slices.ContainsFunc(r.OwnLinks(), func(l Link) bool { return l.Name == n })
	})
}

// Holds reports whether the attachment has this resource as its own.
func (r *Record) Holds(x Resource) bool {
	return slices.ContainsFunc(r.Resources, func(o Resource) bool { return o.Share == Own && o.Equal(x) })
}

// Claims reports whether a live attachment's record keeps others from removing what it holds. What an earlier ADD left
// for an address that the attachment no longer has is a leftover, whoever removes it.
func (r *Record) Claims(x Resource) bool {
	return slices.ContainsFunc(r.Resources, func(o Resource) bool {
		return o.Share == Own && o.Equal(x) && !(o.Superseded && r.outlived(o))
	})
}

// outlived reports whether a rule is for addresses of which the attachment has none any more.
func (r *Record) outlived(x Resource) bool {
	if x.Rule == nil {
		return false
	}
	of := x.Rule.Addresses()
	return len(of) > 0 && !slices.ContainsFunc(of, func(a netip.Addr) bool { return slices.Contains(r.IPs, a) })
}

// Clean reports whether nothing of the record is in the node any more: it is owed, and nothing was left to a claimant.
func (r *Record) Clean() bool { return r.State == Owed && !r.Claimed }

// SameNode reports whether the record was made in this boot and this host
// network namespace. Only then does anything it names still mean the same.
func (r *Record) SameNode(n Node) bool {
	return r.Node.Now.BootID == n.Now.BootID && r.Node.Netns == n.Netns
}
