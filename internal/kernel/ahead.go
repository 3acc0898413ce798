package kernel

import (
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// Ahead is a rule dump that runs while the pod is being read: with thousands of
// rules it takes as long as all the rest. Which links are the pod's own is not known yet, so it keeps every rule with
// an iif or oif.
type Ahead struct {
	ips  []netip.Addr
	done chan struct{}
	all  []attachment.Rule
	err  error
}

// RulesAhead begins the dump, on a socket of its own in the namespace of the
// process, which the caller's thread must not have left.
func RulesAhead(ips []netip.Addr) *Ahead {
	a := &Ahead{ips: ips, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		var h *Handle
		if h, a.err = newHandle(); a.err != nil {
			return
		}
		defer h.Close()
		a.all, a.err = h.rules(func(m []byte) bool { return matches(attachment.RuleFilter{IPs: ips}, true, m) })
	}()
	return a
}

// rules gives what the filter selects of the dump, or of a new one where the
// dump did not look for all of it.
func (a *Ahead) rules(h Host, f attachment.RuleFilter) ([]attachment.Rule, error) {
	if a == nil || !slices.Equal(a.ips, f.IPs) {
		return h.Rules(f)
	}
	<-a.done
	// What an interrupted listing did show is there: better half of it in the record than nothing.
	return slices.DeleteFunc(a.all, func(r attachment.Rule) bool { return !matches(f, false, r.Raw) }), a.err
}
