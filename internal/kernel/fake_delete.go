package kernel

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"golang.org/x/sys/unix"
)

// Delete is Host's, with the kernel's way of choosing: a link goes by its index, a
// rule or route is the first one that agrees with everything the request specifies.
func (f *Fake) Delete(r attachment.Resource) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.broken["Delete"]; err != nil {
		return err
	}
	gone := false
	switch {
	case r.Link != nil:
		l := f.byIndex(r.Link.Index)
		if l != nil && l.Kind == "" {
			return fmt.Errorf("delete %s: %w", r, unix.EOPNOTSUPP)
		}
		gone = l == nil
		if !gone {
			f.dropLink(*l)
		}
	case r.Rule != nil:
		gone = !dropFirst(&f.rules, r.Rule.Hits)
	case r.Route != nil:
		gone = !dropFirst(&f.routes, func(o attachment.Route) bool { return routeHits(*r.Route, o) })
	case r.Neigh != nil:
		gone = !dropFirst(&f.neighs, func(o attachment.Neighbour) bool {
			// lladdr and state are not asked for by RTM_DELNEIGH, except that an entry of a bridge is its MAC
			return o.Family == r.Neigh.Family && o.IfIndex == r.Neigh.IfIndex && o.Dst == r.Neigh.Dst &&
				(o.Family != unix.AF_BRIDGE || o.MAC == r.Neigh.MAC && o.Vlan == r.Neigh.Vlan)
		})
	default:
		return fmt.Errorf("delete %s: this kind is never deleted by itself", r)
	}
	if gone {
		return fmt.Errorf("delete %s: %w", r, attachment.ErrGone)
	}
	return nil
}

// DeleteAll is Host's.
func (f *Fake) DeleteAll(rs []attachment.Resource) []error {
	errs := make([]error, len(rs))
	for i, r := range rs {
		if r.Link != nil {
			f.mu.Lock()
			errs[i] = changed(*r.Link, f.byIndex(r.Link.Index))
			f.mu.Unlock()
		}
		if errs[i] == nil {
			errs[i] = f.Delete(r)
		}
	}
	return errs
}

func dropFirst[T any](all *[]T, is func(T) bool) bool {
	i := slices.IndexFunc(*all, is)
	if i >= 0 {
		*all = slices.Delete(*all, i, i+1)
	}
	return i >= 0
}

// dropLink takes out a link and what the kernel takes with it: a veth's peer, the
// links on top of it, its routes, neighbours and forwarding entries. Rules stay, whatever device they name.
func (f *Fake) dropLink(l attachment.Link) {
	if !dropFirst(&f.links, func(o attachment.Link) bool { return o.Index == l.Index }) {
		return
	}
	f.routes = slices.DeleteFunc(f.routes, func(r attachment.Route) bool { return r.Oif == l.Index })
	f.neighs = slices.DeleteFunc(f.neighs, func(n attachment.Neighbour) bool { return n.IfIndex == l.Index })
	for i := range f.links {
		if f.links[i].Master == l.Index {
			f.links[i].Master = 0
			port := f.links[i].Index
			f.neighs = slices.DeleteFunc(f.neighs, func(n attachment.Neighbour) bool { return n.Family == unix.AF_BRIDGE && n.IfIndex == port })
		}
	}
	for _, o := range slices.Clone(f.links) {
		if o.Parent == l.Index && o.ParentNetnsID < 0 {
			f.dropLink(o)
		}
	}
}

// routeHits reports whether deleting r removes o (net/ipv4/fib_trie.c,
// fib_table_delete): what r leaves open o may have.
func routeHits(r, o attachment.Route) bool {
	if r.Family != o.Family || len(r.Raw) < routeHeader || len(o.Raw) < routeHeader || !bytes.Equal(r.Raw[:routeFlags], o.Raw[:routeFlags]) {
		return false
	}
	for typ, v := range rtattr.Each(r.Raw[routeHeader:]) {
		if !bytes.Equal(rtattr.Get(o.Raw[routeHeader:], typ), v) {
			return false
		}
	}
	return true
}

// lookup walks rules and tables as a packet from this node itself does.
func (f *Fake) lookup(ip netip.Addr) *attachment.Route {
	for _, r := range f.rules {
		if (r.Family == unix.AF_INET6) != ip.Is6() || r.Dst != "" && !contains(r.Dst, ip) {
			continue
		}
		if r.Src != "" || r.OifName != "" || r.IifName != "" && r.IifName != "lo" {
			continue
		}
		if a := r.Raw[ruleAction]; a == unix.FR_ACT_BLACKHOLE || a == unix.FR_ACT_UNREACHABLE || a == unix.FR_ACT_PROHIBIT {
			return nil
		}
		if r.Other != "" {
			continue
		}
		best := -1
		for i, o := range f.routes {
			if o.Family == r.Family && o.Table == r.Table && contains(o.Dst, ip) && (best < 0 || closer(o, f.routes[best])) {
				best = i
			}
		}
		if best < 0 || f.routes[best].Type == "throw" {
			continue
		}
		if f.routes[best].Type != "" {
			return nil // blackhole and its like: the kernel answers with their error
		}
		found := f.routes[best]
		return &found
	}
	return nil
}

// closer reports whether a wins over b where both contain an address.
func closer(a, b attachment.Route) bool {
	if a.Raw[routeDstLen] != b.Raw[routeDstLen] {
		return a.Raw[routeDstLen] > b.Raw[routeDstLen]
	}
	return a.Metric < b.Metric
}

// contains reads a destination as prefix writes it.
func contains(dst string, ip netip.Addr) bool {
	if dst == "default" {
		return true
	}
	if p, err := netip.ParsePrefix(dst); err == nil {
		return p.Contains(ip)
	}
	a, err := netip.ParseAddr(dst)
	return err == nil && a == ip
}
