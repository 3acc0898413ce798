package teardown

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// Seen is what the kernel has of one recorded resource.
type Seen struct {
	Count int    // how many identical ones there are
	Other string // what stands in its place, when that is something else
	// First is another rule that deleting this one would hit before it.
	First *attachment.Rule
	Err   error // it could not be read: never taken as gone
}

// Gone reports whether it is known not to be there any more, whatever stands in its place.
func (s Seen) Gone() bool { return s.Err == nil && (s.Count == 0 || s.Other != "") }

// Sight is what the kernel has of one record.
type Sight struct {
	Resources []Seen // parallel to the record's
	// HostRoute is the route of the node to each address when it is for that address alone.
	HostRoute map[netip.Addr]attachment.Route
	// NoRoute says why the route to an address could not be looked up.
	NoRoute map[netip.Addr]error
	// Named are the links whose names own rules have, NoLink says why one could not be looked up.
	Named  map[string]attachment.Link
	NoLink map[string]error
}

// Observe reads from the kernel whatever the record names, each by its identity.
func Observe(k Kernel, r *attachment.Record) Sight {
	o := observer{k: k, rec: r}
	s := Sight{HostRoute: map[netip.Addr]attachment.Route{}, NoRoute: map[netip.Addr]error{},
		Named: map[string]attachment.Link{}, NoLink: map[string]error{}}
	ruled := false
	for i, x := range r.Resources {
		s.Resources = append(s.Resources, o.see(x))
		ruled = ruled || x.Rule != nil && s.Resources[i].Count > 0
	}
	if !ruled { // the rest is for the rules that are there
		return s
	}
	for _, name := range r.RuleNames() {
		if l, err := k.LinkByName(name); err != nil {
			s.NoLink[name] = err
		} else if l != nil {
			s.Named[name] = *l
		}
	}
	for _, ip := range r.Addresses() {
		if rt, err := k.RouteTo(ip); err != nil {
			s.NoRoute[ip] = err
		} else if rt != nil && rt.Dst == ip.String() {
			s.HostRoute[ip] = *rt
		}
	}
	return s
}

type observer struct {
	k        Kernel
	rec      *attachment.Record
	rules    []attachment.Rule
	rulesErr error
	ruled    bool
}

func (o *observer) see(x attachment.Resource) Seen {
	switch {
	case x.Share == attachment.Shared:
		return Seen{}
	case x.Link != nil:
		return o.link(*x.Link)
	case x.Rule != nil:
		return o.rule(*x.Rule)
	case x.Route != nil:
		return o.route(*x.Route)
	case x.Neigh != nil:
		return o.neigh(x)
	}
	return Seen{Err: fmt.Errorf("kind %q is not known to this backstop", x.Kind)}
}

func (o *observer) link(want attachment.Link) Seen {
	l, err := o.k.LinkByIndex(want.Index)
	if err != nil || l == nil {
		return Seen{Err: err}
	}
	if !l.Same(want) {
		return Seen{Other: "index now belongs to " + l.String()}
	}
	if l.Name != want.Name { // known by its MAC alone: that must be nobody else's
		all, err := o.k.Links()
		if err != nil {
			return Seen{Err: err}
		}
		if n := count(all, want.SameByMAC); n > 1 {
			return Seen{Other: fmt.Sprintf("is now %s, and %d links have its MAC", l, n)}
		}
	}
	return Seen{Count: 1}
}

func (o *observer) rule(want attachment.Rule) Seen {
	if !o.ruled {
		o.rules, o.rulesErr = o.k.Rules(Filter(o.rec))
		o.ruled = true
	}
	s := Seen{Err: o.rulesErr, Count: count(o.rules, want.Equal)}
	if s.Count == 0 {
		return s
	}
	// In the kernel's order: what a deletion meets first must be ours.
	if i := slices.IndexFunc(o.rules, want.Hits); !o.rules[i].Equal(want) {
		s.First = &o.rules[i]
	}
	return s
}

// Filter selects every rule that can be one of the record's, or be taken for it.
func Filter(r *attachment.Record) attachment.RuleFilter {
	f := attachment.RuleFilter{IPs: r.Addresses()}
	for _, x := range r.Resources {
		switch {
		case x.Link != nil && x.Share == attachment.Own:
			f.Names = append(f.Names, x.Link.Name)
		case x.Rule != nil:
			f.Names = appendSet(f.Names, x.Rule.IifName, x.Rule.OifName)
		}
	}
	return f
}

func (o *observer) route(want attachment.Route) Seen {
	list := func() ([]attachment.Route, error) { return o.k.RoutesIn(want.Table) }
	if want.Oif != 0 {
		list = func() ([]attachment.Route, error) { return o.k.RoutesOver(want.Oif) }
	}
	rs, err := list()
	return Seen{Err: err, Count: count(rs, want.Equal)}
}

func (o *observer) neigh(x attachment.Resource) Seen {
	list := o.k.Neighbours
	if x.Kind == attachment.KindFDB {
		list = o.k.FDB
	}
	ns, err := list(x.Neigh.IfIndex)
	return Seen{Err: err, Count: count(ns, func(n attachment.Neighbour) bool {
		n.Dev = x.Neigh.Dev // a name, for people
		return n == *x.Neigh
	})}
}

func count[T any](all []T, is func(T) bool) int {
	n := 0
	for _, x := range all {
		if is(x) {
			n++
		}
	}
	return n
}

func appendSet(to []string, names ...string) []string {
	for _, n := range names {
		if n != "" && !slices.Contains(to, n) {
			to = append(to, n)
		}
	}
	return to
}
