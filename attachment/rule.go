package attachment

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/backstop-cni/backstop/internal/rtattr"
)

// Rule is a policy routing rule. Raw is the identity: the dumped fib_rule_hdr
// and attributes (linux/fib_rules.h) without the state bits that come and go, attributes in order of their type; it is
// also what is sent back to delete exactly this rule. The other fields are for reading and matching.
type Rule struct {
	Family   int    `json:"family"` // AF_INET or AF_INET6
	Priority uint32 `json:"priority"`
	Src      string `json:"src,omitempty"` // prefix
	Dst      string `json:"dst,omitempty"` // prefix
	IifName  string `json:"iif,omitempty"`
	OifName  string `json:"oif,omitempty"`
	Table    uint32 `json:"table"`
	Other    string `json:"other,omitempty"` // remaining selectors and action, as text
	Raw      []byte `json:"raw"`
}

// Equal compares every selector, priority, action and table.
func (r Rule) Equal(o Rule) bool { return r.Family == o.Family && bytes.Equal(r.Raw, o.Raw) }

// SameSelector reports rules that match the same packets at the same priority,
// whatever they then do with them.
func (r Rule) SameSelector(o Rule) bool {
	return r.Family == o.Family && r.Priority == o.Priority && r.Src == o.Src && r.Dst == o.Dst &&
		r.IifName == o.IifName && r.OifName == o.OifName && r.Other == o.Other
}

// Hits reports whether deleting r could remove o: RTM_DELRULE takes the first
// rule that agrees with everything the request specifies, and what r leaves open o may have (net/core/fib_rules.c, rule_find).
func (r Rule) Hits(o Rule) bool {
	if r.Family != o.Family || len(r.Raw) < ruleHeader || len(o.Raw) < ruleHeader {
		return false
	}
	for i := 1; i < 8; i++ { // dst_len, src_len, tos, table, res1, res2, action
		if r.Raw[i] != 0 && r.Raw[i] != o.Raw[i] {
			return false
		}
	}
	for typ, v := range rtattr.Each(r.Raw[ruleHeader:]) {
		if !open(typ, v) && !bytes.Equal(rtattr.Get(o.Raw[ruleHeader:], typ), v) {
			return false
		}
	}
	return true
}

const ruleHeader = 12 // sizeof(struct fib_rule_hdr)

// Attributes of which zero is not "any" (linux/fib_rules.h).
const (
	fraGoto              = 4
	fraSuppressIfgroup   = 13
	fraSuppressPrefixlen = 14
	fraUIDRange          = 20
)

// open reports whether a request with this attribute takes any rule's: the kernel
// skips zeros, of the suppressors -1, and never looks at the target of a goto.
func open(typ uint16, v []byte) bool {
	switch typ {
	case fraGoto:
		return true
	case fraUIDRange: // 0-0 is root's, and what is not set is not dumped
		return false
	case fraSuppressIfgroup, fraSuppressPrefixlen:
		return len(bytes.Trim(v, "\xff")) == 0
	}
	return len(bytes.Trim(v, "\x00")) == 0
}

// Addresses are those that the rule is for, without its prefixes.
func (r Rule) Addresses() (out []netip.Addr) {
	for _, s := range []string{r.Src, r.Dst} {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, a)
		}
	}
	return out
}

func (r Rule) String() string {
	s := fmt.Sprintf("%d: from %s", r.Priority, or(r.Src, "all"))
	if r.Dst != "" {
		s += " to " + r.Dst
	}
	if r.IifName != "" {
		s += " iif " + r.IifName
	}
	if r.OifName != "" {
		s += " oif " + r.OifName
	}
	if r.Table != 0 {
		s += " lookup " + tableName(r.Table)
	}
	if r.Other != "" {
		s += " " + r.Other
	}
	return s
}
