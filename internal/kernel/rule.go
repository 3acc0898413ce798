package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"golang.org/x/sys/unix"
)

// struct fib_rule_hdr (linux/fib_rules.h): offsets of what is used here.
const (
	ruleHeader    = 12
	ruleFamily    = 0
	ruleDstLen    = 1
	ruleSrcLen    = 2
	ruleTos       = 3
	ruleTable     = 4
	ruleAction    = 7
	ruleFlags     = 8
	ruleInvert    = 0x2
	ruleTransient = 0x4 | 0x8 | 0x10 // unresolved, iif detached, oif detached
)

// Rules reads the rules that the filter selects, of both families, in the
// kernel's order.
func (h *Handle) Rules(f attachment.RuleFilter) ([]attachment.Rule, error) {
	var out []attachment.Rule
	selected := selector(f)
	err := h.dumpRules(func() { out = nil }, func(m []byte) {
		if selected(m) {
			out = append(out, parseRule(m))
		}
	})
	return out, err
}

// AllRules reads every IPv4 and IPv6 rule, in the kernel's order: for a look at the whole node, not for a pod's start.
func (h *Handle) AllRules() ([]attachment.Rule, error) {
	var out []attachment.Rule
	err := h.dumpRules(func() { out = nil }, func(m []byte) {
		if len(m) >= ruleHeader && (m[ruleFamily] == unix.AF_INET || m[ruleFamily] == unix.AF_INET6) {
			out = append(out, parseRule(m))
		}
	})
	return out, err
}

func (h *Handle) dumpRules(reset func(), fn func([]byte)) error {
	// AF_UNSPEC walks all families in one dump, multicast routing's among them.
	return describe("list rules", h.dump(unix.RTM_GETRULE, unix.RTM_NEWRULE, reset, fn, make([]byte, ruleHeader)))
}

// selector is matches for many rules: a filter with thousands of addresses is not gone through for each.
func selector(f attachment.RuleFilter) func([]byte) bool {
	if len(f.IPs)+len(f.Names) <= 16 {
		return func(m []byte) bool { return matches(f, false, m) }
	}
	ips, names := map[netip.Addr]bool{}, map[string]bool{}
	for _, ip := range f.IPs {
		ips[ip] = true
	}
	for _, n := range f.Names {
		names[n] = true
	}
	return func(m []byte) bool {
		var own attachment.RuleFilter // what of the filter this rule has
		for t, v := range rtattr.Each(m[min(len(m), ruleHeader):]) {
			switch t {
			case unix.FRA_DST, unix.FRA_SRC:
				if a, ok := netip.AddrFromSlice(v); ok && ips[a] {
					own.IPs = append(own.IPs, a)
				}
			case unix.FRA_IIFNAME, unix.FRA_OIFNAME:
				if n := text(v); names[n] {
					own.Names = append(own.Names, n)
				}
			}
		}
		return matches(own, false, m)
	}
}

// matches applies a filter to a dumped rule; anyLink takes every rule that is for
// one link's traffic, whatever its name.
func matches(f attachment.RuleFilter, anyLink bool, m []byte) bool {
	if len(m) < ruleHeader || (m[ruleFamily] != unix.AF_INET && m[ruleFamily] != unix.AF_INET6) {
		return false
	}
	for t, v := range rtattr.Each(m[ruleHeader:]) {
		switch t {
		case unix.FRA_DST:
			if int(m[ruleDstLen]) == 8*len(v) && hasIP(f.IPs, v) {
				return true
			}
		case unix.FRA_SRC:
			if int(m[ruleSrcLen]) == 8*len(v) && hasIP(f.IPs, v) {
				return true
			}
		case unix.FRA_IIFNAME, unix.FRA_OIFNAME:
			if anyLink || slices.Contains(f.Names, text(v)) {
				return true
			}
		}
	}
	return false
}

func hasIP(ips []netip.Addr, v []byte) bool {
	a, ok := netip.AddrFromSlice(v)
	return ok && slices.Contains(ips, a)
}

func parseRule(m []byte) attachment.Rule {
	head := slices.Clone(m[:ruleHeader])
	flags := native.Uint32(head[ruleFlags:])
	native.PutUint32(head[ruleFlags:], flags&^ruleTransient)
	attrs := rtattr.Normal(m[ruleHeader:], unix.FRA_PAD)
	r := attachment.Rule{Family: int(m[ruleFamily]), Table: uint32(m[ruleTable]), Raw: append(head, attrs...)}
	var other []string
	if flags&ruleInvert != 0 {
		other = append(other, "not")
	}
	if m[ruleTos] != 0 {
		other = append(other, fmt.Sprintf("tos %#x", m[ruleTos]))
	}
	if m[ruleAction] != unix.FR_ACT_TO_TBL {
		other = append(other, fmt.Sprintf("action %d", m[ruleAction]))
	}
	for t, v := range rtattr.Each(attrs) {
		switch t {
		case unix.FRA_DST:
			r.Dst = prefix(v, m[ruleDstLen])
		case unix.FRA_SRC:
			r.Src = prefix(v, m[ruleSrcLen])
		case unix.FRA_IIFNAME:
			r.IifName = text(v)
		case unix.FRA_OIFNAME:
			r.OifName = text(v)
		case unix.FRA_PRIORITY:
			r.Priority = native.Uint32(v)
		case unix.FRA_TABLE:
			r.Table = native.Uint32(v)
		case unix.FRA_FWMARK:
			other = append(other, fmt.Sprintf("fwmark %#x", native.Uint32(v)))
		case unix.FRA_FWMASK:
			other = append(other, fmt.Sprintf("mask %#x", native.Uint32(v)))
		case unix.FRA_PROTOCOL: // who made it: not a selector
		case unix.FRA_SUPPRESS_PREFIXLEN:
			if n := int32(native.Uint32(v)); n >= 0 {
				other = append(other, fmt.Sprintf("suppress_prefixlength %d", n))
			}
		default:
			other = append(other, fmt.Sprintf("attribute %d %x", t, v))
		}
	}
	r.Other = strings.Join(other, " ")
	return r
}

// ruleDeletion sends the dumped attributes back, so that no other rule is meant. The
// caller made sure that the kernel's first match is this one (attachment.Rule.Hits).
func ruleDeletion(r attachment.Rule) (request, error) {
	if len(r.Raw) < ruleHeader {
		return request{}, unix.EINVAL // the kernel would acknowledge it and do nothing
	}
	return request{typ: unix.RTM_DELRULE, head: r.Raw}, nil
}

// text reads a zero-terminated string.
func text(v []byte) string { return unix.ByteSliceToString(v) }

// prefix writes an address and length as a CIDR.
func prefix(v []byte, length uint8) string {
	a, ok := netip.AddrFromSlice(v)
	if !ok {
		return ""
	}
	if int(length) == a.BitLen() {
		return a.String()
	}
	return fmt.Sprintf("%s/%d", a, length)
}
