package teardown

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

func execute(s scene) Outcome { return one(s.node, s.rec, s.plan(), s.others) }

// one executes a plan by itself.
func one(n *node, r *attachment.Record, p Plan, others []Other) Outcome {
	return Execute(n, here, []Work{{r, p, others}})[0]
}

func texts(rs []attachment.Resource) (out []string) {
	for _, r := range rs {
		out = append(out, r.String())
	}
	return out
}

// Whatever a scene is about: what goes is in the plan as "delete", and nothing
// else is so much as asked for.
func TestExecuteTouchesNothingThatIsNotPlanned(t *testing.T) {
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			var planned []string
			for _, st := range s.plan().Steps {
				if st.Verdict != Delete {
					continue
				}
				planned = append(planned, st.Resource.String())
				if x := st.Resource.Link; x != nil { // which may have another name by now
					if l, err := s.node.LinkByIndex(x.Index); err == nil && l != nil {
						planned = append(planned, own(*l).String())
					}
				}
			}
			before := s.node.list()
			out := execute(s)
			for _, x := range s.node.asked {
				if !slices.Contains(planned, x) {
					t.Errorf("asked to remove %s", x)
				}
			}
			after := s.node.list()
			for _, x := range before {
				if !slices.Contains(planned, x) && !slices.Contains(after, x) {
					t.Errorf("gone: %s", x)
				}
			}
			if s.node.fails == nil && s.plan().Count(Delete) > 0 {
				t.Errorf("left in the node:\n%s", s.plan())
			}
			if got, want := out.Err == nil, out.Plan.Count(Unknown) == 0; got != want {
				t.Errorf("%d steps are unknown, and the error is %v", out.Plan.Count(Unknown), out.Err)
			}
		})
	}
}

func TestExecuteRemovesInTheOrderOfThePlan(t *testing.T) {
	s := scenes()["own-and-shared"]
	out := execute(s)
	want := []string{
		"rule 1536: from 10.0.0.2 lookup 100",
		"rule 512: from all to 10.0.0.2 lookup main",
		"route 10.0.0.2 dev veth1 table main",
		"fdb 0a:58:0a:00:00:02 dev veth1",
		"neighbour 10.0.0.2 lladdr 0a:58:0a:00:00:02 dev veth1",
		"link veth1 (veth, index 12)",
		"link bwp1 (ifb, index 13)",
	}
	if !reflect.DeepEqual(s.node.asked, want) {
		t.Errorf("asked for %q\nwant %q", s.node.asked, want)
	}
	if got := texts(out.Removed); !reflect.DeepEqual(got, want) || out.Err != nil {
		t.Errorf("removed %q, %v", got, out.Err)
	}
	if got := s.node.list(); !reflect.DeepEqual(got, []string{"link cni0 (bridge, index 4)"}) {
		t.Errorf("left: %q", got)
	}
}

func TestExecuteGoesOnAfterErrors(t *testing.T) {
	busy := errors.New("device or resource busy")
	n := whole()
	n.fails = map[string]error{own(c1To).String(): busy, own(c1).String(): errKernel}
	out := execute(scene{rec: pod(), node: n})
	if !errors.Is(out.Err, busy) || !errors.Is(out.Err, errKernel) {
		t.Errorf("the error is %v", out.Err)
	}
	if got, want := texts(out.Removed), texts([]attachment.Resource{own(c1From), own(c1Rt)}); !reflect.DeepEqual(got, want) {
		t.Errorf("removed %q, want %q", got, want)
	}
	if got, want := n.list(), texts([]attachment.Resource{own(c1), own(c1To)}); !reflect.DeepEqual(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
}

// The primary may be at work at the same time.
func TestExecuteTakesGoneAsDone(t *testing.T) {
	n := whole()
	s := scene{rec: pod(), node: n}
	plan := s.plan()
	n.rules, n.links, n.routes = nil, nil, nil
	out := one(n, s.rec, plan, nil)
	if out.Err != nil || len(out.Removed) > 0 {
		t.Errorf("removed %v, %v", out.Removed, out.Err)
	}
}

func TestExecuteRemovesIdenticalRules(t *testing.T) {
	n := whole()
	others := []attachment.Rule{rule("1536: from 10.0.0.2 lookup 101"), rule("512: to 10.0.0.3 lookup 254")}
	n.rules = slices.Concat([]attachment.Rule{c1To, c1To, c1From}, others, []attachment.Rule{c1To, c1From})
	out := execute(scene{rec: pod(), node: n})
	if out.Err != nil || !reflect.DeepEqual(n.rules, others) {
		t.Errorf("left %v, %v", n.rules, out.Err)
	}
	if count := len(out.Removed); count != 5+2 {
		t.Errorf("%d removals are reported, want five rules, a route and a link", count)
	}
}

// One rule that cannot go must not keep the copies of another.
func TestExecuteGoesOnAfterErrorsInTheSecondLook(t *testing.T) {
	n := whole()
	n.rules = []attachment.Rule{c1To, c1From, c1From}
	n.fails = map[string]error{own(c1To).String(): errKernel}
	out := execute(scene{rec: pod(), node: n})
	if !errors.Is(out.Err, errKernel) || !reflect.DeepEqual(n.rules, []attachment.Rule{c1To}) {
		t.Errorf("left %v, %v", n.rules, out.Err)
	}
}

func TestExecuteReportsWhatFailsOnlyInTheSecondLook(t *testing.T) {
	n := whole()
	n.rules = []attachment.Rule{c1From, c1From}
	n.then = func() { n.fails = map[string]error{own(c1From).String(): errKernel} }
	out := execute(scene{rec: pod(), node: n})
	if !errors.Is(out.Err, errKernel) {
		t.Errorf("one copy is left, and the error is %v", out.Err)
	}
}

// Rules that come again as fast as they go must not hold the lock for ever.
func TestExecuteGivesUpOnRulesThatComeAgain(t *testing.T) {
	n := whole()
	n.then = func() { n.rules = []attachment.Rule{c1To} }
	out := execute(scene{rec: pod(), node: n})
	if out.Err == nil || !strings.Contains(out.Err.Error(), "still there") {
		t.Errorf("the error is %v", out.Err)
	}
	if count := len(n.asked); count != 4+duplicates {
		t.Errorf("%d removals, want those of the plan and %d more", count, duplicates)
	}
}

func TestExecuteSaysWhatIsStillThere(t *testing.T) {
	n := whole()
	n.deaf, n.rules = true, nil
	out := execute(scene{rec: pod(), node: n})
	for _, x := range []attachment.Resource{own(c1), own(c1Rt)} {
		if out.Err == nil || !strings.Contains(out.Err.Error(), x.String()+" is still there") {
			t.Errorf("%s is not in the error %v", x, out.Err)
		}
	}
}

// The second look is what makes a record clean: when it cannot be had, or shows
// something that cannot be decided, the teardown is not finished.
func TestExecuteIsNotCleanWithoutASecondLook(t *testing.T) {
	n := whole()
	n.then = func() { n.fails = map[string]error{"rules": errKernel} }
	if out := execute(scene{rec: pod(), node: n}); out.Err == nil {
		t.Error("clean, and the rules could not be read after their removal")
	}
}

func TestExecuteIsNotCleanWithACopyBehindANeighboursRule(t *testing.T) {
	n := whole()
	alike := rule("1536: from 10.0.0.2 iif veth9 lookup 100")
	n.rules = []attachment.Rule{c1From, alike, c1From}
	out := execute(scene{rec: pod(), node: n})
	if !reflect.DeepEqual(n.rules, []attachment.Rule{alike, c1From}) {
		t.Errorf("left %v", n.rules)
	}
	if out.Err == nil || !strings.Contains(out.Err.Error(), "another rule first") {
		t.Errorf("the error is %v", out.Err)
	}
}

// A pod that starts between the two looks is seen by the second.
func TestExecuteSparesWhatIsClaimedMeanwhile(t *testing.T) {
	n := whole()
	n.rules = []attachment.Rule{c1From, c1From}
	n.then = func() {
		n.links, n.routes = []attachment.Link{c2}, []attachment.Route{c2Rt}
	}
	out := execute(scene{rec: pod(), node: n})
	if out.Err != nil || !reflect.DeepEqual(n.rules, []attachment.Rule{c1From}) {
		t.Errorf("left %v, %v", n.rules, out.Err)
	}
}

// egress-cni is chained, needs no daemon, and finds its NAT chain by the address of the pod's interface that it made: a
// plugin that removes that interface before makes the chain stay.
func TestFurtherInterfacesAreSpared(t *testing.T) {
	first, further, lone := veth("eni1", 12), veth("v4if", 13), veth("gone", 14)
	first.Parent, further.Parent, lone.Parent = 2, 3, 4
	in := func(name string, index, peer int) attachment.Resource {
		return own(attachment.Link{Name: name, Index: index, Kind: "veth", Parent: peer})
	}
	r := record("c1", "10.0.0.2", own(first), own(further), own(lone))
	r.Pod = []attachment.Resource{in("eth0", 2, 12), in("v4if0", 3, 13), in("other", 4, 99)}
	n := &node{links: []attachment.Link{first, further, lone}}
	p := Build(r, here, Observe(n, r), nil)
	p.Spare(r)
	out := one(n, r, p, nil)
	if out.Err != nil || !reflect.DeepEqual(n.links, []attachment.Link{further}) {
		t.Errorf("left %v (%v), want %v", n.links, out.Err, further)
	}
	out = one(n, r, Build(r, here, Observe(n, r), nil), nil) // a sweep's
	if out.Err != nil || len(n.links) > 0 {
		t.Errorf("a sweep left %v (%v)", n.links, out.Err)
	}
}
