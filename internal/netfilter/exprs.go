package netfilter

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"github.com/google/nftables/xt"
)

// understand reads what is used of a rule.
func understand(r *nftables.Rule) rule {
	out := rule{handle: r.Handle, comment: nftComment(r.UserData)}
	loaded := map[uint32][]byte{} // constants in registers
	var source bool               // the whole source address was loaded last
	for _, x := range r.Exprs {
		wasSource := source
		source = false
		switch x := x.(type) {
		case *expr.Verdict:
			if x.Chain != "" {
				out.jumps = append(out.jumps, x.Chain)
			}
		case *expr.Match:
			if c, ok := x.Info.(*xt.Comment); ok && x.Name == "comment" {
				out.comment = upToZero(string(*c))
			}
		case *expr.Payload:
			source = x.Base == expr.PayloadBaseNetworkHeader && (x.Offset == 12 && x.Len == 4 || x.Offset == 8 && x.Len == 16)
		case *expr.Cmp:
			if wasSource && x.Op == expr.CmpOpEq {
				out.addAddr(x.Data)
			}
		case *expr.Immediate:
			loaded[x.Register] = x.Data
		case *expr.NAT:
			if x.Type == expr.NATTypeDestNAT {
				out.addAddr(loaded[x.RegAddrMin])
			}
		case *expr.Target:
			out.addAddr(dnatTarget(x))
		}
	}
	return out
}

// dnatTarget is where iptables' DNAT leads to, nil for other targets.
func dnatTarget(t *expr.Target) []byte {
	if t.Name != "DNAT" {
		return nil
	}
	switch i := t.Info.(type) {
	case *xt.NatRange:
		return i.MinIP
	case *xt.NatRange2:
		return i.MinIP
	}
	return nil
}

// addAddr notes a container's address. Loopback, which portmap matches too, is nobody's.
func (r *rule) addAddr(b []byte) {
	a, ok := netip.AddrFromSlice(b)
	if a = a.Unmap(); ok && !a.IsLoopback() && !slices.Contains(r.addrs, a) {
		r.addrs = append(r.addrs, a)
	}
}

// nftComment reads a rule's comment from its user data: type, length and value, one after the other (libnftnl, udata.h).
// The kernel does not look into them, so that they may be anything.
func nftComment(b []byte) string {
	for len(b) >= 2 && len(b) >= 2+int(b[1]) {
		if userdata.Type(b[0]) == userdata.TypeComment {
			return upToZero(string(b[2 : 2+int(b[1])]))
		}
		b = b[2+int(b[1]):]
	}
	return ""
}

// upToZero is a C string in a larger field.
func upToZero(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}
