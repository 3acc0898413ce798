package teardown

import (
	"maps"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// Together is the kernel for a look at several records at once: the rules, which the kernel can only list as a whole,
// and the routes over the records' links, for which it goes through all that it has, are read once, at the first question.
// It answers for this look alone.
func Together(k Kernel, recs ...*attachment.Record) Kernel {
	t := &together{Kernel: k}
	names, oifs := map[string]bool{}, map[int]bool{}
	for _, r := range recs {
		f := Filter(r)
		t.filter.IPs = append(t.filter.IPs, f.IPs...)
		for _, n := range f.Names {
			names[n] = true
		}
		for _, x := range r.Resources {
			if x.Route != nil && x.Route.Oif != 0 {
				oifs[x.Route.Oif] = true
			}
		}
	}
	t.filter.Names = slices.Collect(maps.Keys(names))
	t.oifs = slices.Sorted(maps.Keys(oifs))
	return t
}

type together struct {
	Kernel
	filter attachment.RuleFilter
	read   bool
	rules  []attachment.Rule
	by     map[string][]int // the rules of an address or a name, in the kernel's order
	err    error

	oifs      []int
	over      map[int][]attachment.Route // nil until they are read
	routesErr error
}

// Rules gives those that the filter selects, which is one of the records'.
func (t *together) Rules(f attachment.RuleFilter) (out []attachment.Rule, err error) {
	if !t.read {
		t.readRules()
	}
	var found []int
	for _, ip := range f.IPs {
		found = append(found, t.by[ip.String()]...)
	}
	for _, n := range f.Names {
		found = append(found, t.by[n]...)
	}
	slices.Sort(found)
	for _, i := range slices.Compact(found) {
		out = append(out, t.rules[i])
	}
	return out, t.err
}

func (t *together) readRules() {
	t.read = true
	t.rules, t.err = t.Kernel.Rules(t.filter)
	t.by = map[string][]int{}
	for i, r := range t.rules {
		for _, selector := range []string{r.Src, r.Dst, r.IifName, r.OifName} { // a single address has no length
			t.by[selector] = append(t.by[selector], i)
		}
	}
}

// RoutesOver gives those over one of the records' links.
func (t *together) RoutesOver(oifs ...int) (out []attachment.Route, err error) {
	if t.over == nil {
		t.over = map[int][]attachment.Route{}
		var all []attachment.Route
		all, t.routesErr = t.Kernel.RoutesOver(t.oifs...)
		for _, r := range all {
			t.over[r.Oif] = append(t.over[r.Oif], r)
		}
	}
	for _, o := range oifs {
		out = append(out, t.over[o]...)
	}
	return out, t.routesErr
}
