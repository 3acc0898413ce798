package teardown

import (
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

const mainTable = 254 // RT_TABLE_MAIN

// Newcomer takes out of a new record what it merely found: a newcomer does not
// claim a dead or late pod's leftovers only because they carry its address. Those are a rule that another record
// holds, when the newcomer has one with the same selector and another table that nobody else holds, or when its
// prevResult says that its rules lead elsewhere; and a route over another record's own link. What earlier has, the record of an
// earlier ADD of its own if there was one, does not say which rule the newer one made; what that one merely found does.
func Newcomer(r, earlier *attachment.Record, others []Other) (found []attachment.Resource) {
	// One of another boot has nothing in this kernel, and of one that is owed all but what was claimed is gone: what looks like theirs
	// nobody would remove for them.
	others = slices.DeleteFunc(slices.Clone(others), func(o Other) bool {
		return !o.Record.SameNode(r.Node) || o.Record.Clean()
	})
	held := func(x attachment.Resource) bool {
		return slices.ContainsFunc(others, func(o Other) bool { return o.Record.Holds(x) })
	}
	mine := slices.Clone(r.Resources)
	tables := attachment.ParseResult(r.PrevResult).Tables()
	said := func(x attachment.Rule) bool { return len(tables) > 0 && x.Src != "" && x.Table != mainTable }
	merelyFound := func(x attachment.Resource) bool {
		switch {
		case x.Share != attachment.Own, x.Superseded: // what an earlier ADD of its own had is its own
			return false
		case x.Rule != nil:
			if !held(x) {
				return false
			}
			if said(*x.Rule) {
				return !slices.Contains(tables, x.Rule.Table)
			}
			foundBefore := earlier != nil && slices.ContainsFunc(earlier.Found, x.Equal)
			return slices.ContainsFunc(mine, func(y attachment.Resource) bool {
				return y.Rule != nil && y.Rule.SameSelector(*x.Rule) && y.Rule.Table != x.Rule.Table && !held(y) &&
					(earlier == nil || foundBefore || !earlier.Holds(y))
			})
		case x.Route != nil:
			return x.Route.Oif != 0 && !r.OwnLink(x.Route.Oif) &&
				slices.ContainsFunc(others, func(o Other) bool { return o.Record.OwnLink(x.Route.Oif) })
		}
		return false
	}
	r.Resources = nil
	for _, x := range mine {
		if merelyFound(x) {
			found = append(found, x)
		} else {
			r.Resources = append(r.Resources, x)
		}
	}
	return found
}
