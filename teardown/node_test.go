package teardown

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// node is a Kernel in memory. Like the real one it removes the first rule that a
// request agrees with, and with a link what hangs on it.
type node struct {
	links  []attachment.Link
	rules  []attachment.Rule // in the kernel's order
	routes []attachment.Route
	neighs []attachment.Neighbour
	fdb    []attachment.Neighbour
	// fails makes a reading fail, or the removal of a resource, by its text.
	fails map[string]error
	// asked lists the removals in their order.
	asked []string
	deaf  bool   // removals succeed and change nothing
	then  func() // called after each removal: what others do meanwhile
	dumps int    // of all rules, which a node with many pods pays for
}

var errKernel = errors.New("listing was interrupted too often")

func (n *node) LinkByIndex(i int) (*attachment.Link, error) {
	if err := n.fails["link"]; err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(n.links, func(l attachment.Link) bool { return l.Index == i }); at >= 0 {
		return &n.links[at], nil
	}
	return nil, nil
}

func (n *node) LinkByName(name string) (*attachment.Link, error) {
	if err := n.fails["link by name"]; err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(n.links, func(l attachment.Link) bool { return l.Name == name }); at >= 0 {
		return &n.links[at], nil
	}
	return nil, nil
}

func (n *node) Links() ([]attachment.Link, error) { return n.links, n.fails["links"] }

func (n *node) Rules(f attachment.RuleFilter) (out []attachment.Rule, err error) {
	n.dumps++
	for _, r := range n.rules {
		src, _ := netip.ParseAddr(r.Src)
		dst, _ := netip.ParseAddr(r.Dst)
		if slices.Contains(f.IPs, src) || slices.Contains(f.IPs, dst) || slices.Contains(f.Names, r.IifName) || slices.Contains(f.Names, r.OifName) {
			out = append(out, r)
		}
	}
	return out, n.fails["rules"]
}

func (n *node) RoutesOver(oifs ...int) ([]attachment.Route, error) {
	return where(n.routes, func(r attachment.Route) bool { return slices.Contains(oifs, r.Oif) }), n.fails["routes over"]
}

func (n *node) RoutesIn(table uint32) ([]attachment.Route, error) {
	return where(n.routes, func(r attachment.Route) bool { return r.Table == table }), n.fails["routes in"]
}

func (n *node) RouteTo(ip netip.Addr) (*attachment.Route, error) {
	if err := n.fails["route to"]; err != nil {
		return nil, err
	}
	for _, dst := range []string{ip.String(), "default"} {
		if rs := where(n.routes, func(r attachment.Route) bool { return r.Dst == dst && r.Table == 254 }); len(rs) > 0 {
			return &rs[0], nil
		}
	}
	return nil, nil
}

func (n *node) Neighbours(i int) ([]attachment.Neighbour, error) {
	return nameless(n.neighs, i), n.fails["neighbours"]
}

func (n *node) FDB(i int) ([]attachment.Neighbour, error) {
	return nameless(n.fdb, i), n.fails["fdb"]
}

// nameless are a link's entries as the kernel has them: names of links are for
// people.
func nameless(all []attachment.Neighbour, index int) []attachment.Neighbour {
	out := where(all, func(x attachment.Neighbour) bool { return x.IfIndex == index })
	for i := range out {
		out[i].Dev = ""
	}
	return out
}

func (n *node) DeleteAll(xs []attachment.Resource) (errs []error) {
	for _, x := range xs {
		errs = append(errs, n.delete(x))
	}
	return errs
}

func (n *node) delete(x attachment.Resource) error {
	n.asked = append(n.asked, x.String())
	if n.then != nil {
		defer n.then()
	}
	if err := n.fails[x.String()]; err != nil || n.deaf {
		return err
	}
	before := n.size()
	switch {
	case x.Rule != nil:
		if i := slices.IndexFunc(n.rules, x.Rule.Hits); i >= 0 {
			n.rules = slices.Delete(n.rules, i, i+1)
		}
	case x.Route != nil:
		n.routes = slices.DeleteFunc(n.routes, x.Route.Equal)
	case x.Kind == attachment.KindFDB:
		n.fdb = slices.DeleteFunc(n.fdb, func(o attachment.Neighbour) bool { return o == *x.Neigh })
	case x.Neigh != nil:
		n.neighs = slices.DeleteFunc(n.neighs, func(o attachment.Neighbour) bool { return o == *x.Neigh })
	case x.Link != nil:
		on := func(o attachment.Neighbour) bool { return o.IfIndex == x.Link.Index }
		n.links = slices.DeleteFunc(n.links, func(l attachment.Link) bool { return l.Index == x.Link.Index })
		n.routes = slices.DeleteFunc(n.routes, func(r attachment.Route) bool { return r.Oif == x.Link.Index })
		n.neighs, n.fdb = slices.DeleteFunc(n.neighs, on), slices.DeleteFunc(n.fdb, on)
	}
	if n.size() == before {
		return fmt.Errorf("delete %s: %w", x, attachment.ErrGone)
	}
	return nil
}

func (n *node) size() int {
	return len(n.links) + len(n.rules) + len(n.routes) + len(n.neighs) + len(n.fdb)
}

// list is all that is in the node, in the words of ip(8).
func (n *node) list() (out []string) {
	for _, l := range n.links {
		out = append(out, own(l).String())
	}
	for _, r := range n.rules {
		out = append(out, own(r).String())
	}
	for _, r := range n.routes {
		out = append(out, own(r).String())
	}
	for _, x := range n.neighs {
		out = append(out, own(x).String())
	}
	for _, x := range n.fdb {
		out = append(out, fdb(x).String())
	}
	return out
}

func where[T any](all []T, is func(T) bool) (out []T) {
	for _, x := range all {
		if is(x) {
			out = append(out, x)
		}
	}
	return out
}
