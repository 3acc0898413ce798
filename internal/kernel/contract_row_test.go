package kernel_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// More rules and routes than one datagram holds go in one call: one that is gone, or that cannot be removed, keeps none of the
// others, each has its own answer, and what nobody named stays.
func TestManyRulesAndRoutesInARow(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		link := w.veth("h0")
		w.must("rule add pref 512 to 10.3.0.1 lookup main", "route add 10.3.0.1 dev h0")
		before := w.list()
		const pods = 100
		var ips []string
		var lines []string
		for i := range pods {
			ip := fmt.Sprintf("10.2.0.%d", i+1)
			ips = append(ips, ip)
			lines = append(lines, "rule add pref 512 to "+ip+" lookup main", "route add "+ip+" dev h0")
		}
		w.must(lines...)
		all := w.rowOf(link.Index, ips)
		if len(all) != 2*pods {
			t.Fatalf("%d resources, want %d", len(all), 2*pods)
		}
		const goneRule, goneRoute, never = 3, pods + 70, 5
		for _, i := range []int{goneRule, goneRoute} {
			if err := w.Delete(all[i]); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all[:never:never], append([]attachment.Resource{{Kind: attachment.KindAddress, Address: &attachment.Address{}}}, all[never:]...)...)

		for i, err := range w.DeleteAll(all) {
			switch i {
			case goneRule, goneRoute + 1:
				if !errors.Is(err, attachment.ErrGone) || !strings.Contains(err.Error(), all[i].String()) {
					t.Errorf("%s, which is gone: %v", all[i], err)
				}
			case never:
				if err == nil || errors.Is(err, attachment.ErrGone) {
					t.Errorf("an address was deleted by itself: %v", err)
				}
			default:
				if err != nil {
					t.Errorf("%s: %v", all[i], err)
				}
			}
		}
		after := w.list()
		if lost, left := minus(before, after), minus(after, before); len(lost)+len(left) > 0 {
			t.Errorf("lost %q, left %q", lost, left)
		}
	})
}

// rowOf lists the rules and routes of addresses, the rules first.
func (w *world) rowOf(index int, of []string) (all []attachment.Resource) {
	rules := w.rules(attachment.RuleFilter{IPs: ips(of...)})
	for i := range rules {
		all = append(all, attachment.Resource{Kind: attachment.KindRule, Rule: &rules[i]})
	}
	routes, err := w.RoutesOver(index)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range routes {
		if strings.HasPrefix(routes[i].Dst, "10.2.") {
			all = append(all, attachment.Resource{Kind: attachment.KindRoute, Route: &routes[i]})
		}
	}
	return all
}

// Acknowledgements that do not fit into the socket are lost: each resource is asked for once more by itself, and nothing is
// said to be there still that is gone.
func TestAnswersOfARowThatAreLost(t *testing.T) {
	n := enterNode(t)
	h := n.handle()
	w := &world{Host: h, t: t}
	n.ip("link add h0 type ifb")
	before := n.everything()
	var of []string
	for i := range 50 {
		of = append(of, fmt.Sprintf("10.2.0.%d", i+1))
		n.ip("rule add pref 512 to " + of[i] + " lookup main")
	}
	all := w.rowOf(1, of)
	if len(all) != len(of) {
		t.Fatalf("%d rules, want %d", len(all), len(of))
	}
	if err := h.Deafen(); err != nil {
		t.Fatal(err)
	}
	again := 0
	for i, err := range h.DeleteAll(all) {
		if errors.Is(err, attachment.ErrGone) {
			again++
		} else if err != nil {
			t.Errorf("%s: %v", all[i], err)
		}
	}
	if again == 0 {
		t.Error("no answer was lost: the test shows nothing")
	}
	if left := minus(n.everything(), before); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
