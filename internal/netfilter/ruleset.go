package netfilter

import "net/netip"

// Ruleset is what the tables that plugins write to held at one time.
type Ruleset struct {
	chains map[place][]rule
	// mapped are chains that verdict maps lead to.
	mapped map[place]bool
}

// rule is what is used of a rule.
type rule struct {
	handle  uint64
	comment string
	jumps   []string     // chains that it leads to
	addrs   []netip.Addr // sources it matches, and where DNAT leads to
}

// tables are those that plugins write to.
var tables = []place{
	{family: "ip", table: tableNat}, {family: "ip6", table: tableNat}, {family: "bridge", table: tableNat},
	{family: "ip", table: tableHostPort}, {family: "ip6", table: tableHostPort}, {family: "inet", table: tableMasq},
}
