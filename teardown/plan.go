package teardown

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
)

// Verdict is what a plan does with a resource.
type Verdict string

const (
	Delete  Verdict = "delete"
	Gone    Verdict = "gone"
	Kept    Verdict = "shared"  // serves others too
	Foreign Verdict = "foreign" // something else stands in its place
	Claimed Verdict = "claimed" // a live attachment uses it
	Unknown Verdict = "unknown" // could not be read
)

// Step is one resource of a plan.
type Step struct {
	Resource attachment.Resource
	Verdict  Verdict
	Why      string // empty where the verdict says it all
	// Unrecorded says that whoever claims it is not in the journal, by the kernel's word: its ADD may be under way.
	Unrecorded bool
	// Spared says that it is left to a plugin that is called next, see Plan.Spare.
	Spared bool
}

// String is the step's line in a plan.
func (s Step) String() string {
	line := fmt.Sprintf("%-8s %s", s.Verdict, s.Resource)
	if s.Why != "" {
		line += " (" + s.Why + ")"
	}
	return line
}

// Plan is the ordered list of what a teardown does with each resource of a
// record.
type Plan struct {
	Key   attachment.Key
	Notes []string
	Steps []Step
}

// Other is another open record that shares an address or a link with the one
// to be torn down.
type Other struct {
	Record *attachment.Record
	Life   attachment.Life
}

// Build makes the plan. It is pure: everything it knows is in its arguments.
func Build(r *attachment.Record, here attachment.Node, s Sight, others []Other) Plan {
	p := Plan{Key: r.Key}
	sameNode := r.SameNode(here)
	if !sameNode {
		p.Notes = append(p.Notes, "recorded in another boot or network namespace of this node: the kernel is left alone")
	}
	for i, x := range r.Resources {
		st := Step{Resource: x}
		switch {
		case x.Share != attachment.Own:
			st.Verdict = Kept
		case !sameNode:
			st.Verdict = Foreign
		default:
			st.Verdict, st.Why, st.Unrecorded = judge(r, x, s.Resources[i], s, others)
		}
		p.Steps = append(p.Steps, st)
	}
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return cmp.Compare(rank(a.Resource), rank(b.Resource)) })
	return p
}

// judge applies the safety rules to one own resource.
func judge(r *attachment.Record, x attachment.Resource, seen Seen, s Sight, others []Other) (v Verdict, why string, unrecorded bool) {
	switch {
	case seen.Err != nil:
		return Unknown, seen.Err.Error(), false
	case seen.Other != "":
		return Foreign, seen.Other, false
	case seen.Count == 0:
		return Gone, "", false
	}
	for _, o := range others {
		if o.Life != attachment.Dead && o.Record.Claims(x) {
			return Claimed, fmt.Sprintf("by %s (%s)", o.Record.Key, o.Life), false
		}
	}
	if x.Link != nil && !x.Link.Removable() {
		return Kept, "links of this kind are never deleted", false
	}
	if x.Rule != nil {
		if v, why := kernelClaim(r, *x.Rule, s, others); v != "" {
			return v, why, v == Claimed
		}
		if seen.First != nil {
			return Unknown, "deleting it would hit another rule first: " + seen.First.String(), false
		}
	}
	return Delete, "", false
}

// rank is the order of removal: what refers before what is referred to, and an
// ifb after the veth that is mirrored to it.
func rank(x attachment.Resource) int {
	switch x.Kind {
	case attachment.KindRule:
		return 0
	case attachment.KindRoute:
		return 1
	case attachment.KindNeighbour, attachment.KindFDB:
		return 2
	case attachment.KindLink:
		if x.Link != nil && x.Link.Kind == "ifb" {
			return 4
		}
		return 3
	}
	return 5
}

// Spare leaves the pod's interfaces but the one that the attachment is named after, for the DEL that is running. The
// plugins of the list are called next, and the ones that made them (a chained one as egress-cni, which needs no daemon)
// find by them what else they have to remove. It is not the end of the teardown.
func (p *Plan) Spare(r *attachment.Record) {
	for i, s := range p.Steps {
		if s.Verdict == Delete && s.Resource.Link != nil && leadsToFurther(r, *s.Resource.Link) {
			p.Steps[i].Verdict, p.Steps[i].Why, p.Steps[i].Spared = Kept, "for the plugin that made it, which is called next", true
		}
	}
}

// Leave takes everything that would be removed out of the plan.
func (p *Plan) Leave(why string) {
	for i, s := range p.Steps {
		if s.Verdict == Delete {
			p.Steps[i].Verdict, p.Steps[i].Why = Kept, why
		}
	}
}

// Spares reports whether something is left to the plugins that are called next.
func (p Plan) Spares() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Spared })
}

func leadsToFurther(r *attachment.Record, host attachment.Link) bool {
	return slices.ContainsFunc(r.Pod, func(x attachment.Resource) bool {
		return x.Link != nil && x.Link.Name != r.IfName && x.Link.Index == host.Parent && x.Link.Parent == host.Index
	})
}

// Count tells how many steps have one of the verdicts.
func (p Plan) Count(vs ...Verdict) int {
	n := 0
	for _, s := range p.Steps {
		if slices.Contains(vs, s.Verdict) {
			n++
		}
	}
	return n
}

// Unsettled reports whether something is left to a claimant that the journal does not know. When that one's ADD is
// recorded, or it is gone, the answer is another one.
func (p Plan) Unsettled() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Unrecorded })
}

// String is the plan as --dry-run prints it. The form is stable.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", p.Key)
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "  # %s\n", n)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	if len(p.Steps) == 0 {
		b.WriteString("  nothing is recorded on the node\n")
	}
	return b.String()
}
