package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

// Fake is a Host in memory, for tests of what stands on top of this package. The
// suite in contract_test.go holds it to what the kernel does; whatever is not in that suite a Fake may do otherwise.
//
// It is furnished with the words of ip(8) and bridge(8), see IP. It knows links, rules in the kernel's order,
// routes by table, permanent and other neighbours, and forwarding entries. It does not know addresses, link states
// (every link is up and has a carrier), multipath routes, nexthop objects, and what the kernel makes by itself
// beyond the rules of a new namespace.
type Fake struct {
	mu     sync.Mutex
	links  []attachment.Link
	rules  []attachment.Rule
	routes []attachment.Route
	neighs []attachment.Neighbour // of every state; forwarding entries have family AF_BRIDGE
	spaces []string               // other namespaces by their id, as veth peers name them
	broken map[string]error
}

var _ Host = (*Fake)(nil)

// NewFake is the host's namespace of a new node: lo and the kernel's own rules.
func NewFake() *Fake {
	f := &Fake{broken: map[string]error{}}
	f.links = []attachment.Link{{Index: 1, Name: "lo", MTU: 65536, ParentNetnsID: -1}}
	for _, line := range []string{
		"rule add pref 0 protocol kernel lookup local", "rule add pref 32766 protocol kernel lookup main",
		"rule add pref 32767 protocol kernel lookup default",
		"-6 rule add pref 0 protocol kernel lookup local", "-6 rule add pref 32766 protocol kernel lookup main",
	} {
		if err := f.IP(line); err != nil {
			panic(err) // the words above are this package's own
		}
	}
	return f
}

// Break makes a method (by its name in Host) answer with an error from now on,
// nil heals it.
func (f *Fake) Break(method string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken[method] = err
}

// Put adds a resource as it was recorded or read, even if it is there already:
// the kernel too can hold the same rule twice.
func (f *Fake) Put(r attachment.Resource) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case r.Link != nil:
		f.links = append(f.links, *r.Link)
	case r.Rule != nil:
		f.putRule(*r.Rule)
	case r.Route != nil:
		f.putRoute(*r.Route)
	case r.Neigh != nil:
		f.neighs = append(f.neighs, *r.Neigh)
	}
}

// LinkByIndex is Host's.
func (f *Fake) LinkByIndex(index int) (*attachment.Link, error) {
	return one(f, "LinkByIndex", func(l attachment.Link) bool { return l.Index == index })
}

// LinkByName is Host's.
func (f *Fake) LinkByName(name string) (*attachment.Link, error) {
	return one(f, "LinkByName", func(l attachment.Link) bool { return l.Name == name })
}

func one(f *Fake, method string, is func(attachment.Link) bool) (*attachment.Link, error) {
	all, err := some(f, method, &f.links, is)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// Links is Host's.
func (f *Fake) Links() ([]attachment.Link, error) {
	return some(f, "Links", &f.links, func(attachment.Link) bool { return true })
}

// Rules is Host's.
func (f *Fake) Rules(filter attachment.RuleFilter) ([]attachment.Rule, error) {
	return some(f, "Rules", &f.rules, func(r attachment.Rule) bool { return matches(filter, false, r.Raw) })
}

// RoutesOver is Host's.
func (f *Fake) RoutesOver(oifs ...int) ([]attachment.Route, error) {
	return some(f, "RoutesOver", &f.routes, func(r attachment.Route) bool { return slices.Contains(oifs, r.Oif) })
}

// RoutesIn is Host's.
func (f *Fake) RoutesIn(table uint32) ([]attachment.Route, error) {
	return some(f, "RoutesIn", &f.routes, func(r attachment.Route) bool { return r.Table == table })
}

// RouteTo is Host's: the first rule that a packet of this node itself to the
// address meets and whose table has a route decides. Rules that ask for more than a destination (a source, a
// mark, a port, an iif other than lo …) are not met, and a goto is not followed.
func (f *Fake) RouteTo(ip netip.Addr) (*attachment.Route, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.broken["RouteTo"]; err != nil {
		return nil, err
	}
	return f.lookup(ip), nil
}

// Neighbours is Host's.
func (f *Fake) Neighbours(ifIndex int) ([]attachment.Neighbour, error) {
	return some(f, "Neighbours", &f.neighs, func(n attachment.Neighbour) bool {
		return n.Family != unix.AF_BRIDGE && n.IfIndex == ifIndex && n.State&unix.NUD_PERMANENT != 0
	})
}

// FDB is Host's.
func (f *Fake) FDB(ifIndex int) ([]attachment.Neighbour, error) {
	return some(f, "FDB", &f.neighs, func(n attachment.Neighbour) bool {
		return n.Family == unix.AF_BRIDGE && n.IfIndex == ifIndex && n.State&(unix.NUD_PERMANENT|unix.NUD_NOARP) != 0
	})
}

// some copies what is wanted of one of the fake's lists.
func some[T any](f *Fake, method string, all *[]T, want func(T) bool) ([]T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.broken[method]; err != nil {
		return nil, err
	}
	var out []T
	for _, x := range *all {
		if want(x) {
			out = append(out, x)
		}
	}
	return out, nil
}

// String lists everything, one line for each thing: links by index, rules in
// the kernel's order, the rest sorted. The form is stable, for golden files.
func (f *Fake) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var links, rules, rest []string
	for _, l := range slices.SortedFunc(slices.Values(f.links), func(a, b attachment.Link) int { return a.Index - b.Index }) {
		links = append(links, fmt.Sprintf("link %s mac %s mtu %d%s", l, l.MAC, l.MTU, f.relations(l)))
	}
	for _, r := range f.rules {
		rules = append(rules, "rule"+family(r.Family)+" "+r.String())
	}
	for _, r := range f.routes {
		r.Dev = f.name(r.Oif)
		rest = append(rest, "route"+family(r.Family)+" "+r.String())
	}
	for _, n := range f.neighs {
		n.Dev = f.name(n.IfIndex)
		kind := attachment.KindNeighbour
		if n.Family == unix.AF_BRIDGE {
			kind = attachment.KindFDB
		}
		rest = append(rest, fmt.Sprintf("%s %s state %#x", kind, n, n.State))
	}
	slices.Sort(rest)
	return strings.Join(slices.Concat(links, rules, rest), "\n") + "\n"
}

func (f *Fake) relations(l attachment.Link) string {
	var s string
	if l.Master != 0 {
		s += " master " + f.name(l.Master)
	}
	switch {
	case l.ParentNetnsID >= 0:
		s += fmt.Sprintf(" parent %d in netns %d", l.Parent, l.ParentNetnsID)
	case l.Parent != 0:
		s += " parent " + f.name(l.Parent)
	}
	return s
}

func family(f int) string {
	if f == unix.AF_INET6 {
		return "6"
	}
	return "4"
}

func (f *Fake) name(index int) string {
	for _, l := range f.links {
		if l.Index == index {
			return l.Name
		}
	}
	return ""
}
