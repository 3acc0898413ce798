package teardown

import "github.com/backstop-cni/backstop/attachment"

// Together is the kernel for a look at several records at once: the rules, which the kernel can only list as a whole,
// are read once, at the first question. It answers for this look alone.
func Together(k Kernel, recs ...*attachment.Record) Kernel {
	t := &together{Kernel: k}
	for _, r := range recs {
		f := Filter(r)
		t.filter.IPs, t.filter.Names = append(t.filter.IPs, f.IPs...), appendSet(t.filter.Names, f.Names...)
	}
	return t
}

type together struct {
	Kernel
	filter attachment.RuleFilter
	read   bool
	rules  []attachment.Rule
	err    error
}

// Rules gives those of all the records, which is more than was asked for: an observer compares each by its identity.
func (t *together) Rules(attachment.RuleFilter) ([]attachment.Rule, error) {
	if !t.read {
		t.rules, t.err = t.Kernel.Rules(t.filter)
		t.read = true
	}
	return t.rules, t.err
}
