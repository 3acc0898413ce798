package kernel

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// Target says whose resources to capture.
type Target struct {
	Result attachment.Result
	IfName string
	// Pod is the pod's namespace; nil when it cannot be entered, and then only what prevResult
	// proves is taken as own.
	Pod *Handle
	// Prove says that Pod may be another pod's namespace, entered by a recycled path: it counts only
	// if one of the result's addresses is in it.
	Prove bool
	// Rules, when set, is a rule dump that was begun ahead.
	Rules *Ahead
	// PodNSID asks by which id the host knows the pod's namespace; nil or -1 when it does not.
	PodNSID func() int
}

// Captured is what an attachment put into the node.
type Captured struct {
	IPs       []netip.Addr
	Resources []attachment.Resource
	Pod       []attachment.Resource
}

// Capture reads it. Whatever fails is left out and reported in the joined error: half a record is
// better than none.
func Capture(host Host, t Target) (Captured, error) {
	c := &capture{host: host, t: t}
	c.IPs = t.Result.IPs
	if t.Pod != nil {
		c.podSide()
		if t.Prove && !c.proven() {
			c.t.Pod, c.t.PodNSID, c.pods, c.Pod = nil, nil, nil, nil
			c.IPs = t.Result.IPs
		}
	}
	t.Rules.only(c.IPs)
	c.hostLinks()
	own := c.ownLinks()
	for _, l := range own {
		c.neighbours(l)
	}
	c.routes(own)
	c.rules(own)
	c.routesByRule()
	return c.Captured, errors.Join(c.errs...)
}

type capture struct {
	Captured
	host Host
	t    Target
	errs []error
	pods []attachment.Link // links inside the pod
	gone []string          // host links that prevResult names and the kernel has not
}

func (c *capture) failed(err error) bool {
	if err != nil {
		c.errs = append(c.errs, err)
	}
	return err != nil
}

func (c *capture) add(r attachment.Resource) {
	if !slices.ContainsFunc(c.Resources, r.Equal) {
		c.Resources = append(c.Resources, r)
	}
}

// hostLinks finds the links on the host: the peers of the pod's links, and what
// prevResult names.
func (c *capture) hostLinks() {
	for _, p := range c.pods {
		if p.Kind != "veth" || p.Parent == 0 || p.ParentNetnsID < 0 || p.ParentNetnsID != c.t.Pod.hostNSID() {
			continue
		}
		l, err := c.host.LinkByIndex(p.Parent)
		if c.failed(err) || l == nil || l.Kind != "veth" || l.Parent != p.Index {
			continue
		}
		if c.movedIn(p, *l) {
			c.addLink(*l, attachment.Shared)
			continue
		}
		c.addLink(*l, attachment.Own)
		if l.Master != 0 {
			m, err := c.host.LinkByIndex(l.Master)
			if !c.failed(err) && m != nil {
				c.addLink(*m, attachment.Shared)
			}
		}
	}
	for _, i := range c.t.Result.Interfaces {
		if i.Sandbox != "" {
			continue
		}
		l, err := c.host.LinkByName(i.Name)
		if err == nil && l == nil {
			c.gone = append(c.gone, i.Name)
		}
		if c.failed(err) || l == nil || c.hasLink(l.Index) {
			continue
		}
		c.addLink(*l, c.share(*l, i))
	}
	c.branchLinks()
}

// branchLinks finds the vlan of a branch ENI, which is one pod's alone and stays when its netns goes. No interface of
// the result has its name.
func (c *capture) branchLinks() {
	for _, name := range c.t.Result.BranchLinks() {
		l, err := c.host.LinkByName(name)
		if !c.failed(err) && l != nil && l.Kind == "vlan" {
			c.addLink(*l, attachment.Own)
		}
	}
}

// movedIn reports whether a veth's end was there before the pod and was only moved
// into it: host-device leaves its old name as the alias, and names no host interface. Deleting the peer would delete
// somebody's device.
func (c *capture) movedIn(pod, host attachment.Link) bool {
	return pod.Alias != "" && !slices.ContainsFunc(c.t.Result.Interfaces, func(i attachment.Interface) bool {
		return i.Sandbox == "" && i.Name == host.Name
	})
}

// share decides whether a link that prevResult names is this attachment's own.
// The name proves nothing: a veth must lead into the pod or, when that cannot be entered, have
// the MAC that prevResult gives.
func (c *capture) share(l attachment.Link, i attachment.Interface) attachment.Share {
	switch l.Kind {
	case "ifb": // appended by the bandwidth plugin for this container alone
		return attachment.Own
	case "veth":
		if l.ParentNetnsID >= 0 && c.t.PodNSID != nil && l.ParentNetnsID == c.t.PodNSID() {
			return attachment.Own
		}
		if c.t.Pod == nil && l.MAC != "" && l.MAC == i.MAC && c.uniqueMAC(l.MAC) {
			return attachment.Own
		}
	}
	return attachment.Shared
}

func (c *capture) uniqueMAC(mac string) bool {
	all, err := c.host.Links()
	if c.failed(err) {
		return false
	}
	n := 0
	for _, l := range all {
		if l.MAC == mac {
			n++
		}
	}
	return n == 1
}

func (c *capture) addLink(l attachment.Link, s attachment.Share) {
	if !l.Removable() {
		s = attachment.Shared
	}
	c.add(attachment.Resource{Kind: attachment.KindLink, Share: s, Link: &l})
}

func (c *capture) hasLink(index int) bool {
	return slices.ContainsFunc(c.Resources, func(r attachment.Resource) bool { return r.Link != nil && r.Link.Index == index })
}

func (c *capture) ownLinks() []attachment.Link {
	r := attachment.Record{Resources: c.Resources}
	return r.OwnLinks()
}

// rules takes those for the pod's addresses and links. A link that went with its pod leaves rules by its name behind,
// which would send the next link of that name wrong.
func (c *capture) rules(own []attachment.Link) {
	f := attachment.RuleFilter{IPs: c.IPs, Names: c.gone}
	for _, l := range own {
		f.Names = append(f.Names, l.Name)
	}
	if len(f.IPs)+len(f.Names) == 0 {
		return
	}
	rules, err := c.t.Rules.rules(c.host, f)
	c.failed(err)
	for _, r := range rules {
		c.add(attachment.Resource{Kind: attachment.KindRule, Share: attachment.Own, Rule: &r})
	}
}

// routes takes those over own links, and those to the pod's addresses alone,
// wherever they lead.
func (c *capture) routes(own []attachment.Link) {
	for _, l := range own {
		rs, err := c.host.RoutesOver(l.Index)
		c.failed(err)
		for _, r := range rs {
			c.addRoute(r)
		}
	}
	for _, ip := range c.IPs {
		if c.hasRouteTo(ip) {
			continue // a lookup walks every rule of the node
		}
		r, err := c.host.RouteTo(ip)
		if !c.failed(err) && r != nil && r.Dst == ip.String() && c.ours(*r) {
			c.addRoute(*r)
		}
	}
}

// routesByRule takes those to the pod's addresses in the tables that only its
// rules reach.
func (c *capture) routesByRule() {
	for _, t := range c.tables() {
		rs, err := c.host.RoutesIn(t)
		c.failed(err)
		for _, r := range rs {
			if slices.ContainsFunc(c.IPs, func(ip netip.Addr) bool { return r.Dst == ip.String() }) && c.ours(r) {
				c.addRoute(r)
			}
		}
	}
}

func (c *capture) addRoute(r attachment.Route) {
	for _, l := range c.ownLinks() {
		if l.Index == r.Oif {
			r.Dev = l.Name
		}
	}
	c.add(attachment.Resource{Kind: attachment.KindRoute, Share: attachment.Own, Route: &r})
}

func (c *capture) hasRouteTo(ip netip.Addr) bool {
	return slices.ContainsFunc(c.Resources, func(r attachment.Resource) bool { return r.Route != nil && r.Route.Dst == ip.String() })
}

// ours tells a route to the pod's address from one to another pod that has, or
// had, the same address: that one leaves over a veth that does not lead into this pod. Without a look into
// the pod only its own link is proof.
func (c *capture) ours(r attachment.Route) bool {
	if slices.ContainsFunc(c.ownLinks(), func(l attachment.Link) bool { return l.Index == r.Oif }) {
		return true
	}
	if c.t.Pod == nil || r.Oif == 0 { // over no device, or over several: nothing says whose it is
		return false
	}
	l, err := c.host.LinkByIndex(r.Oif)
	return !c.failed(err) && (l == nil || !l.Removable())
}

// tables are those that the pod's rules reach, apart from the ones every node has.
func (c *capture) tables() []uint32 {
	var out []uint32
	for _, r := range c.Resources {
		if r.Rule != nil && r.Rule.Table != 0 && (r.Rule.Table < 253 || r.Rule.Table > 255) && !slices.Contains(out, r.Rule.Table) {
			out = append(out, r.Rule.Table)
		}
	}
	return out
}

func (c *capture) neighbours(l attachment.Link) {
	add := func(k attachment.Kind, ns []attachment.Neighbour, err error) {
		c.failed(err)
		for _, n := range ns {
			if k == attachment.KindFDB && n.MAC == l.MAC {
				continue // a port's own address: made and removed by the kernel
			}
			n.Dev = l.Name
			c.add(attachment.Resource{Kind: k, Share: attachment.Own, Neigh: &n})
		}
	}
	ns, err := c.host.Neighbours(l.Index)
	add(attachment.KindNeighbour, ns, err)
	if l.Master != 0 {
		ns, err = c.host.FDB(l.Index)
		add(attachment.KindFDB, ns, err)
	}
}
