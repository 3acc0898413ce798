package teardown

import (
	"fmt"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// kernelClaim looks for a pod that the journal does not know yet: between a new
// pod's primary and its backstop ADD only a host route over a strange link tells of it or, where a rule goes by the
// link's name alone, that link. The verdict is empty when the kernel's word is that there is none.
func kernelClaim(r *attachment.Record, rule attachment.Rule, s Sight, others []Other) (Verdict, string) {
	addresses := rule.Addresses()
	for _, ip := range addresses {
		if err := s.NoRoute[ip]; err != nil {
			return Unknown, err.Error()
		}
		rt, ok := s.HostRoute[ip] // one by way of a gateway leads to another node: the address is a pod's there
		if !ok || (rt.Oif == 0 && rt.Type != "") || rt.Gateway != "" || r.OwnLink(rt.Oif) || r.Holds(attachment.Resource{Kind: attachment.KindRoute, Route: &rt}) {
			continue
		}
		if rt.Oif == 0 {
			return Claimed, fmt.Sprintf("by the kernel's word: %s leaves over several links", ip)
		}
		known := func(o Other) bool { return o.Record.OwnLink(rt.Oif) }
		if !slices.ContainsFunc(others, known) {
			return Claimed, fmt.Sprintf("by the kernel's word: %s leaves over link %d, which no record owns", ip, rt.Oif)
		}
	}
	if len(addresses) > 0 {
		return "", ""
	}
	for _, name := range []string{rule.IifName, rule.OifName} {
		if err := s.NoLink[name]; err != nil {
			return Unknown, err.Error()
		}
		l, ok := s.Named[name]
		known := func(o Other) bool { return hasLink(o.Record, l) }
		if ok && !hasLink(r, l) && !slices.ContainsFunc(others, known) {
			return Claimed, fmt.Sprintf("by the kernel's word: %s is link %d, which no record has", name, l.Index)
		}
	}
	return "", ""
}

// hasLink reports whether a link is one of a record's, its own or shared.
func hasLink(r *attachment.Record, l attachment.Link) bool {
	return slices.ContainsFunc(r.Resources, func(x attachment.Resource) bool { return x.Link != nil && x.Link.Index == l.Index })
}
