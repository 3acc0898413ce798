package kernel_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// Links that go together are compared once more: one that is gone, or whose index is another's by now, does not keep the
// others, and that other one stays, as everything beside them does.
func TestManyLinksAtOnce(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.veth("near")
		w.must("route add 10.0.0.9 dev near", "rule add pref 512 to 10.0.0.9 lookup main")
		before := w.list()
		var all []attachment.Resource
		for i := range 7 {
			all = append(all, ofLink(*w.veth(fmt.Sprintf("h%d", i))))
		}
		w.must("link add b1 type ifb", "route add 10.0.0.5 dev h0", "rule add pref 512 to 10.0.0.5 lookup main")
		routes, err := w.RoutesOver(all[0].Link.Index)
		if err != nil || len(routes) != 1 {
			t.Fatal(routes, err)
		}
		rules := w.rules(attachment.RuleFilter{IPs: ips("10.0.0.5")})
		first := []attachment.Resource{{Kind: attachment.KindRule, Rule: &rules[0]}, {Kind: attachment.KindRoute, Route: &routes[0]}}
		all = append(append(first, all...), ofLink(*w.link("b1")))
		w.must("link del h2", "link del h3", fmt.Sprintf("link add other index %d type ifb", all[5].Link.Index))
		other := w.link("other").String()

		for i, err := range w.DeleteAll(all) {
			if is := errors.Is(err, attachment.ErrGone); is != (i == 4 || i == 5) || err != nil && !is {
				t.Errorf("%s: %v", all[i], err)
			}
			if i == 5 && !strings.Contains(err.Error(), other) {
				t.Errorf("the error does not name what has the index now: %v", err)
			}
		}
		after := w.list()
		if lost := minus(before, after); len(lost) > 0 {
			t.Errorf("lost:\n%s", strings.Join(lost, "\n"))
		}
		if left := minus(after, before); len(left) != 1 || !strings.Contains(left[0], "other") {
			t.Errorf("beside the one that has an index now:\n%s", strings.Join(left, "\n"))
		}
	})
}

// The kernel deletes a group as a whole or not at all: with one that cannot go the others go one by one.
func TestManyLinksAndOneThatCannotGo(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		before := w.list()
		all := []attachment.Resource{ofLink(*w.link("lo"))}
		for i := range 5 {
			all = append(all, ofLink(*w.veth(fmt.Sprintf("h%d", i))))
		}
		for i, err := range w.DeleteAll(all) {
			if (err != nil) != (i == 0) || errors.Is(err, attachment.ErrGone) {
				t.Errorf("%s: %v", all[i], err)
			}
		}
		if after := w.list(); len(minus(before, after))+len(minus(after, before)) > 0 {
			t.Errorf("was\n%s\nis\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	})
}

// What is not deleted keeps the group that it had: people have uses for groups.
func TestGroupsAreGivenBack(t *testing.T) {
	n := enterNode(t)
	n.ip("link set lo group 7", "link add near group 7 type ifb")
	all := []attachment.Resource{ofLink(attachment.Link{Index: 1, Name: "lo"})}
	h := n.handle()
	for i := range 5 {
		name := fmt.Sprintf("h%d", i)
		n.ip("link add " + name + " type ifb")
		l, err := h.LinkByName(name)
		if err != nil || l == nil {
			t.Fatal(l, err)
		}
		if i == 4 { // another link by then
			l.Name, l.MAC = "h9", ""
		}
		all = append(all, ofLink(*l))
	}
	h.DeleteAll(all)
	for group, want := range map[string]string{"7": "lo near", "0": "h4"} {
		out, err := n.run([]string{"ip", "-br"}, "link show group "+group+"\n")
		var names []string
		for line := range strings.Lines(string(out)) {
			names = append(names, strings.Fields(line)[0])
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("in group %s: %q (%v), want %q", group, got, err, want)
		}
	}
}
