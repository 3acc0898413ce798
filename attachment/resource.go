package attachment

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
)

// ErrGone is the answer to the removal of something that is not there: as good
// as done.
var ErrGone = errors.New("already gone")

// RuleFilter selects policy routing rules: those whose source or destination is
// exactly one of the addresses, or whose iif or oif is one of the names.
type RuleFilter struct {
	IPs   []netip.Addr
	Names []string
}

// Kind is a kind of resource.
type Kind string

// The kinds that are captured today; their order in Kinds is the order of removal.
const (
	KindRule      Kind = "rule"
	KindRoute     Kind = "route"
	KindNeighbour Kind = "neighbour"
	KindFDB       Kind = "fdb"
	KindLink      Kind = "link"
	KindAddress   Kind = "address" // pod side only: addresses go with their link
	// KindReservation is what an IPAM plugin holds. It is read when it is to be released, never recorded.
	KindReservation Kind = "reservation"
	// KindNetfilter is what plugins put into nftables. It is found by the container's name, never recorded.
	KindNetfilter Kind = "netfilter"
)

// Share says whom a resource serves.
type Share string

const (
	Own    Share = "own"    // exists for this attachment alone: removed with it
	Shared Share = "shared" // serves others too: never removed with an attachment
)

// Resource is one thing an attachment put into a node. Exactly one of the
// pointers is set, the one that Kind names.
type Resource struct {
	Kind    Kind       `json:"kind"`
	Share   Share      `json:"share"`
	Link    *Link      `json:"link,omitempty"`
	Rule    *Rule      `json:"rule,omitempty"`
	Route   *Route     `json:"route,omitempty"`
	Neigh   *Neighbour `json:"neighbour,omitempty"` // KindNeighbour and KindFDB
	Address *Address   `json:"address,omitempty"`
	// Reservation is the file that holds an address for host-local.
	Reservation *Reservation `json:"reservation,omitempty"`
	Netfilter   *Netfilter   `json:"netfilter,omitempty"`
	// Superseded marks a resource of an earlier ADD of the same key that the
	// newer ADD did not find among its own.
	Superseded bool `json:"superseded,omitempty"`
}

// String is the resource in the words of ip(8), stable enough for golden files.
func (r Resource) String() string {
	switch {
	case r.Link != nil:
		return "link " + r.Link.String()
	case r.Rule != nil:
		return "rule " + r.Rule.String()
	case r.Route != nil:
		return "route " + r.Route.String()
	case r.Neigh != nil:
		return string(r.Kind) + " " + r.Neigh.String()
	case r.Address != nil:
		return "address " + r.Address.String()
	case r.Reservation != nil:
		return "reservation " + r.Reservation.String()
	case r.Netfilter != nil:
		return "netfilter " + r.Netfilter.String()
	}
	return string(r.Kind) + " (empty)"
}

// Equal reports whether both describe the same thing in the kernel by every
// attribute that counts (design: "Safety", rule 2). Share does not count.
func (r Resource) Equal(o Resource) bool {
	if r.Kind != o.Kind {
		return false
	}
	switch {
	case r.Link != nil && o.Link != nil:
		return r.Link.Same(*o.Link)
	case r.Rule != nil && o.Rule != nil:
		return r.Rule.Equal(*o.Rule)
	case r.Route != nil && o.Route != nil:
		return r.Route.Equal(*o.Route)
	case r.Neigh != nil && o.Neigh != nil:
		return *r.Neigh == *o.Neigh
	case r.Address != nil && o.Address != nil:
		return *r.Address == *o.Address
	}
	return false
}

// Validate reports a resource whose kind and content do not agree, as a damaged
// or foreign record may hold.
func (r Resource) Validate() error {
	ok := map[Kind]bool{
		KindLink: r.Link != nil, KindRule: r.Rule != nil, KindRoute: r.Route != nil,
		KindNeighbour: r.Neigh != nil, KindFDB: r.Neigh != nil, KindAddress: r.Address != nil,
	}
	if has, known := ok[r.Kind]; !known || !has {
		return fmt.Errorf("resource of kind %q without its content", r.Kind)
	}
	n := 0
	for _, has := range []bool{r.Link != nil, r.Rule != nil, r.Route != nil, r.Neigh != nil, r.Address != nil} {
		if has {
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("resource of kind %q with the content of %d kinds", r.Kind, n)
	}
	if r.Share != Own && r.Share != Shared {
		return fmt.Errorf("resource %s: share %q is neither %q nor %q", r, r.Share, Own, Shared)
	}
	return nil
}

// Route is a route. Raw is the identity: the dumped rtmsg and attributes
// (linux/rtnetlink.h) without rtm_flags and cache info.
type Route struct {
	Family  int    `json:"family"`
	Dst     string `json:"dst"` // prefix; "default" for the zero prefix
	Table   uint32 `json:"table"`
	Oif     int    `json:"oif,omitempty"`
	Dev     string `json:"dev,omitempty"` // name of Oif at capture, for people
	Gateway string `json:"gateway,omitempty"`
	Metric  uint32 `json:"metric,omitempty"`
	Type    string `json:"type,omitempty"` // "" is unicast
	Raw     []byte `json:"raw"`
}

// Equal compares destination, table, metric, type and every next hop.
func (r Route) Equal(o Route) bool { return r.Family == o.Family && bytes.Equal(r.Raw, o.Raw) }

func (r Route) String() string {
	s := r.Dst
	if r.Type != "" {
		s = r.Type + " " + s
	}
	if r.Gateway != "" {
		s += " via " + r.Gateway
	}
	if r.Oif != 0 {
		s += " dev " + or(r.Dev, fmt.Sprintf("if%d", r.Oif))
	}
	s += " table " + tableName(r.Table)
	if r.Metric != 0 {
		s += fmt.Sprintf(" metric %d", r.Metric)
	}
	return s
}

// Neighbour is a permanent neighbour or, with family AF_BRIDGE, a static
// forwarding entry (linux/neighbour.h).
type Neighbour struct {
	Family  int    `json:"family"`
	IfIndex int    `json:"ifIndex"`
	Dev     string `json:"dev,omitempty"`
	Dst     string `json:"dst,omitempty"`
	MAC     string `json:"mac,omitempty"`
	Vlan    uint16 `json:"vlan,omitempty"`
	State   uint16 `json:"state"`
	Flags   uint8  `json:"flags,omitempty"`
}

func (n Neighbour) String() string {
	s := n.Dst
	if n.MAC != "" {
		if s != "" {
			s += " lladdr "
		}
		s += n.MAC
	}
	if n.Vlan != 0 {
		s += fmt.Sprintf(" vlan %d", n.Vlan)
	}
	return s + " dev " + or(n.Dev, fmt.Sprintf("if%d", n.IfIndex))
}

// Address is an address of a link on the pod's side.
type Address struct {
	Dev  string `json:"dev"`
	CIDR string `json:"cidr"`
}

func (a Address) String() string { return a.CIDR + " dev " + a.Dev }

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// tableName gives the names that every iproute2 knows; others are numbers.
func tableName(t uint32) string {
	switch t {
	case 253:
		return "default"
	case 254:
		return "main"
	case 255:
		return "local"
	}
	return fmt.Sprint(t)
}
