package garbage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/netfilter"
)

// Ends says what the caller knows of attachments that a look at the node does not tell.
type Ends struct {
	// Torn are those that are torn down with it: neither what is still there of them nor a grace counts.
	Torn func(attachment.Key) bool
	// Ordered says that a person wants it: then those are torn down whatever else is there of them.
	Ordered bool
	// Patient waits for the grace of those that no DEL came for, too.
	Patient bool
}

func (e Ends) torn(o owner) bool { return e.Torn != nil && e.Torn(o.key()) }

func (o owner) key() attachment.Key {
	return attachment.Key{Network: o.network, ContainerID: o.container, IfName: o.ifName}
}

// Attachments gives every attachment that is known by its name, in order: recorded, closed, or in the runtime's cache.
func (f *Finder) Attachments() []attachment.Key {
	var out []attachment.Key
	for o := range f.records {
		out = append(out, o.key())
	}
	for o := range f.past {
		out = append(out, o.key())
	}
	for o := range f.cache {
		out = append(out, o.key())
	}
	slices.SortFunc(out, inOrder)
	return slices.Compact(out)
}

func inOrder(a, b attachment.Key) int {
	return cmp.Or(strings.Compare(a.Network, b.Network), strings.Compare(a.ContainerID, b.ContainerID), strings.Compare(a.IfName, b.IfName))
}

// Netfilter judges pieces that were found of Attachments. A piece is dead when every interface is that is known of the
// container, in the network or, where the piece names none, in any.
func (f *Finder) Netfilter(pieces []netfilter.Piece, e Ends) (out []Item) {
	for _, p := range pieces {
		it := Item{Key: p.Key, Netfilter: &p.Netfilter, piece: p}
		if it.Life, it.Why = f.lifeOfPiece(p, e); it.Life == attachment.Dead && p.Serves != "" {
			it.Life, it.Why = attachment.Unknown, p.Serves
		}
		out = append(out, it)
	}
	return out
}

func (f *Finder) lifeOfPiece(p netfilter.Piece, e Ends) (life attachment.Life, why string) {
	if f.noCache != nil {
		return attachment.Unknown, "whether it is in use cannot be told: " + f.noCache.Error()
	}
	of := f.owners(p)
	life, why = attachment.Unknown, "nothing is known of its container"
	ordered := false
	for _, o := range of {
		l, w := f.over(o, e)
		if l != attachment.Dead {
			return l, fmt.Sprintf("%s: %s", o.key(), w)
		}
		life, why = l, w
		ordered = ordered || e.Ordered && e.torn(o)
	}
	if life == attachment.Dead && !ordered {
		if doubt := f.doubtPiece(p, of); doubt != "" {
			return attachment.Unknown, doubt
		}
	}
	return life, why
}

// owners gives the interfaces that are known of a piece's containers, in order.
func (f *Finder) owners(p netfilter.Piece) (out []owner) {
	if f.containers == nil {
		f.containers = map[string][]owner{}
		for _, known := range []map[owner]recorded{f.records, f.past} {
			for o := range known {
				f.containers[o.container] = append(f.containers[o.container], o)
			}
		}
	}
	for _, of := range p.Owners {
		for _, o := range slices.Concat(f.containers[of.ContainerID], f.inCache(of.ContainerID)) {
			if (of.Network == "" || of.Network == o.network) && !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	slices.SortFunc(out, func(a, b owner) int { return inOrder(a.key(), b.key()) })
	return out
}

// over decides whether an attachment is, and no plugin can be at its DEL.
func (f *Finder) over(o owner, e Ends) (attachment.Life, string) {
	if r, open := f.records[o]; open {
		switch {
		case !r.sameNode:
			return attachment.Unknown, "recorded in another boot or network namespace"
		case r.never && !e.Ordered:
			return attachment.Unknown, `teardown is "never"`
		case e.torn(o):
			return attachment.Dead, "torn down with it"
		}
		if l, why := f.judge(o); l != attachment.Dead {
			return l, why
		}
		return f.afterGrace(r, e)
	}
	if r, closed := f.past[o]; closed {
		if _, cached := f.cache[o]; cached {
			if l, why := f.judge(o); l != attachment.Dead {
				return l, why
			}
		}
		if r.never {
			return attachment.Unknown, `teardown was "never"`
		}
		return f.afterGrace(r, e)
	}
	return f.judge(o)
}

func (f *Finder) afterGrace(r recorded, e Ends) (attachment.Life, string) {
	now := f.env.Now()
	switch {
	case r.lastDel != nil && r.lastDel.Since(now) < r.grace:
		return attachment.Unknown, "the grace since its last DEL is not over"
	case e.Patient && r.claim.State == attachment.Attached && (r.deadSince == nil || r.deadSince.Since(now) < r.grace):
		return attachment.Unknown, "no DEL came, and its grace is not over"
	case r.claim.State == attachment.Closed:
		return attachment.Dead, "closed"
	}
	return attachment.Dead, "recorded, and its netns and host link are gone"
}

// doubtPiece looks for what speaks for another ADD of the same container, which may be between the plugin that made the piece and
// backstop: ids come again with runtimes that restart a container.
func (f *Finder) doubtPiece(p netfilter.Piece, of []owner) string {
	var ips []netip.Addr
	for _, o := range of {
		for _, r := range []recorded{f.records[o], f.past[o]} {
			if f.inside(r, o.ifName) {
				return fmt.Sprintf("%s is in the netns that is recorded: another ADD may be under way", o.ifName)
			}
			ips = append(ips, r.ips...)
		}
	}
	for _, a := range p.Addresses {
		if len(ips) > 0 && !slices.Contains(ips, a) {
			return fmt.Sprintf("it has the address %s, which is not recorded: another ADD may be under way", a)
		}
	}
	for _, a := range slices.Concat(p.Addresses, p.Elsewhere) {
		rt, err := f.env.Kernel.RouteTo(a)
		if err != nil {
			return err.Error()
		}
		if rt != nil && rt.Dst == a.String() && rt.Gateway == "" && rt.Type == "" && !f.ownLink(rt.Oif) {
			return fmt.Sprintf("the node has a route to %s over link %d, which is in no record", a, rt.Oif)
		}
	}
	return ""
}

// inside reports whether an interface is in a netns that was recorded, or may be. A path of /proc may by now be another process's.
func (f *Finder) inside(r recorded, ifName string) bool {
	if r.claim.Netns == "" {
		return false
	}
	id, err := kernel.NamespaceAt(r.claim.Netns)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, kernel.ErrNotNetns) || id == f.env.Node.Netns ||
		id != r.claim.NetnsID && strings.HasPrefix(r.claim.Netns, "/proc/") {
		return false
	}
	if err != nil {
		return true
	}
	pod, _, err := kernel.OpenPod(r.claim.Netns, f.env.Node)
	if err != nil {
		return true
	}
	defer pod.Close()
	l, err := pod.LinkByName(ifName)
	return err != nil || l != nil
}

// ownLink reports whether a device is one of an open record's.
func (f *Finder) ownLink(index int) bool {
	for _, r := range f.records {
		if slices.ContainsFunc(r.claim.Links, func(l attachment.Link) bool { return l.Index == index }) {
			return true
		}
	}
	return false
}

// RemoveNetfilter removes the dead ones, each container's at once, and gives those that it removed.
func RemoveNetfilter(c *netfilter.Conn, items []Item) ([]Item, error) {
	var groups [][]netfilter.Piece
	at := map[attachment.Key]int{}
	for _, it := range items {
		if it.Netfilter == nil || it.Life != attachment.Dead {
			continue
		}
		container := attachment.Key{Network: it.Key.Network, ContainerID: it.Key.ContainerID}
		i, there := at[container]
		if !there {
			i = len(groups)
			at[container] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], it.piece)
	}
	gone, err := c.Remove(groups...)
	return slices.DeleteFunc(slices.Clone(items), func(it Item) bool {
		return !slices.ContainsFunc(gone, func(p netfilter.Piece) bool { return it.Netfilter != nil && *it.Netfilter == p.Netfilter })
	}), err
}

// Serves reports whether it is a dead attachment's chain that somebody else uses, too.
func (it Item) Serves() bool { return it.piece.Serves != "" && it.Why == it.piece.Serves }
