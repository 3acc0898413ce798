package kernel

import (
	"net/netip"
	"sync/atomic"

	"github.com/backstop-cni/backstop/attachment"
)

// Ahead is a rule dump that runs while the configuration and the pod are being
// read: with thousands of rules it takes as long as all the rest. Until it is known which addresses are the pod's, it
// keeps all that it reads; which links are the pod's is not known before its end.
type Ahead struct {
	ips  atomic.Pointer[[]netip.Addr]
	done chan struct{}
	kept []byte // the first rules, one after the other
	ends []int  // where each of them ends
	rest []attachment.Rule
	err  error
}

// RulesAhead begins the dump, on a socket of its own in the namespace of the
// process, which the caller's thread must not have left.
func RulesAhead() *Ahead {
	a := &Ahead{done: make(chan struct{}), kept: make([]byte, 0, bufferSize)}
	go func() {
		defer close(a.done)
		var h *Handle
		if h, a.err = newHandle(); a.err != nil {
			return
		}
		defer h.Close()
		a.err = h.dumpRules(func() { a.kept, a.ends, a.rest = a.kept[:0], a.ends[:0], a.rest[:0] }, a.take)
	}()
	return a
}

// take never waits: a goroutine that does is woken only when the caller's pauses, and nothing would be done ahead.
func (a *Ahead) take(m []byte) {
	ips := a.ips.Load()
	switch {
	case ips == nil:
		a.kept = append(a.kept, m...)
		a.ends = append(a.ends, len(a.kept))
	case matches(attachment.RuleFilter{IPs: *ips}, true, m):
		a.rest = append(a.rest, parseRule(m))
	}
}

// only says which addresses the filter will have.
func (a *Ahead) only(ips []netip.Addr) {
	if a != nil {
		a.ips.Store(&ips)
	}
}

// rules gives what the filter selects of the dump, or of a new one where none
// was begun.
func (a *Ahead) rules(h Host, f attachment.RuleFilter) (out []attachment.Rule, err error) {
	if a == nil {
		return h.Rules(f)
	}
	<-a.done
	start := 0
	for _, end := range a.ends {
		if m := a.kept[start:end]; matches(f, false, m) {
			out = append(out, parseRule(m))
		}
		start = end
	}
	for _, r := range a.rest {
		if matches(f, false, r.Raw) {
			out = append(out, r)
		}
	}
	// What an interrupted listing did show is there: better half of it in the record than nothing.
	return out, a.err
}
