package kernel_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// world is a Host, how to furnish it, and how to look at it without its help.
type world struct {
	kernel.Host
	t    *testing.T
	ip   func(line string) error
	put  func(attachment.Rule)          // adds a rule even if it is there
	list func(kinds ...string) []string // as everything does
	peer int
}

// both runs one suite on the fake and on the kernel.
func both(t *testing.T, suite func(t *testing.T, w *world)) {
	t.Run("fake", func(t *testing.T) {
		f := kernel.NewFake()
		suite(t, &world{
			Host: f, t: t, ip: f.IP,
			put:  func(r attachment.Rule) { f.Put(attachment.Resource{Kind: attachment.KindRule, Rule: &r}) },
			list: func(...string) []string { return strings.Split(strings.TrimSpace(f.String()), "\n") },
		})
	})
	t.Run("kernel", func(t *testing.T) {
		n := enterNode(t)
		pod := newPod(t)
		suite(t, &world{
			Host: n.handle(), t: t,
			ip: func(line string) error {
				args, line := program(strings.ReplaceAll(line, "POD", pod.path))
				_, err := n.run(args, line+"\n")
				return err
			},
			put: func(r attachment.Rule) {
				req := nl.NewNetlinkRequest(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_ACK)
				raw := r.Raw
				if r.Priority == 0 { // which is not dumped, and left out would get one
					raw = rtattr.Append(slices.Clone(raw), unix.FRA_PRIORITY, make([]byte, 4))
				}
				req.AddRawData(raw)
				if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
					t.Fatalf("put %s: %v", r, err)
				}
			},
			list: n.everything,
		})
	})
}

// must furnishes the world.
func (w *world) must(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		if err := w.ip(line); err != nil {
			w.t.Fatal(err)
		}
	}
}

// veth makes a host veth whose peer is in a pod.
func (w *world) veth(name string) *attachment.Link {
	w.t.Helper()
	w.peer++
	w.must(fmt.Sprintf("link add %s type veth peer name e%d netns POD", name, w.peer), "link set "+name+" up")
	return w.link(name)
}

func (w *world) link(name string) *attachment.Link {
	w.t.Helper()
	l, err := w.LinkByName(name)
	if err != nil || l == nil {
		w.t.Fatalf("link %s: %v, %v", name, l, err)
	}
	return l
}

// rule gives the one rule that appears with this line.
func (w *world) rule(f attachment.RuleFilter, line string) attachment.Rule {
	w.t.Helper()
	before := w.rules(f)
	w.must(line)
	for _, r := range w.rules(f) {
		if !slices.ContainsFunc(before, r.Equal) {
			return r
		}
	}
	w.t.Fatalf("%q: the rule is not among %v", line, w.rules(f))
	return attachment.Rule{}
}

func (w *world) rules(f attachment.RuleFilter) []attachment.Rule {
	w.t.Helper()
	rs, err := w.Rules(f)
	if err != nil {
		w.t.Fatal(err)
	}
	return rs
}

// route gives the one route of a table that appears with this line.
func (w *world) route(table uint32, line string) attachment.Route {
	w.t.Helper()
	before := w.in(table)
	w.must(line)
	for _, r := range w.in(table) {
		if !slices.ContainsFunc(before, r.Equal) {
			return r
		}
	}
	w.t.Fatalf("%q: the route is not among %v", line, w.in(table))
	return attachment.Route{}
}

func (w *world) in(table uint32) []attachment.Route {
	w.t.Helper()
	rs, err := w.RoutesIn(table)
	if err != nil {
		w.t.Fatal(err)
	}
	return rs
}

// deleted removes a resource and gives the lines that went with it. Nothing may come.
func (w *world) deleted(r attachment.Resource, kinds ...string) []string {
	w.t.Helper()
	before := w.list(kinds...)
	if err := w.Delete(r); err != nil {
		w.t.Fatal(err)
	}
	after := w.list(kinds...)
	if more := minus(after, before); len(more) > 0 {
		w.t.Fatalf("deleting %s made\n%s", r, strings.Join(more, "\n"))
	}
	return minus(before, after)
}

func ofRule(r attachment.Rule) attachment.Resource {
	return attachment.Resource{Kind: attachment.KindRule, Share: attachment.Own, Rule: &r}
}

func ofRoute(r attachment.Route) attachment.Resource {
	return attachment.Resource{Kind: attachment.KindRoute, Share: attachment.Own, Route: &r}
}

func ofLink(l attachment.Link) attachment.Resource {
	return attachment.Resource{Kind: attachment.KindLink, Share: attachment.Own, Link: &l}
}

func ofNeigh(k attachment.Kind, n attachment.Neighbour) attachment.Resource {
	return attachment.Resource{Kind: k, Share: attachment.Own, Neigh: &n}
}

func ips(s ...string) []netip.Addr {
	var out []netip.Addr
	for _, x := range s {
		out = append(out, netip.MustParseAddr(x))
	}
	return out
}

// texts writes each of a list, for a comparison that can be read.
func texts[T fmt.Stringer](all []T) string {
	var s []string
	for _, x := range all {
		s = append(s, x.String())
	}
	return strings.Join(s, "\n")
}

func isGone(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, attachment.ErrGone) {
		t.Errorf("%s: %v, want ErrGone", what, err)
	}
}
