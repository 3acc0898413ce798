package kernel

import (
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// podSide reads what is inside the pod: the interfaces that prevResult puts
// there, and CNI_IFNAME, which some plugins leave out.
func (c *capture) podSide() {
	names := []string{c.t.IfName}
	for _, i := range c.t.Result.Interfaces {
		if i.Sandbox != "" && !slices.Contains(names, i.Name) {
			names = append(names, i.Name)
		}
	}
	for _, n := range names {
		l, err := c.t.Pod.LinkByName(n)
		if c.failed(err) || l == nil {
			continue // AWS lists a "dummy…" that no kernel has
		}
		c.pods = append(c.pods, *l)
		c.addPod(attachment.Resource{Kind: attachment.KindLink, Link: l})
		c.podAddresses(*l)
		ns, err := c.t.Pod.Neighbours(l.Index)
		c.failed(err)
		for _, n := range ns {
			n.Dev = l.Name
			c.addPod(attachment.Resource{Kind: attachment.KindNeighbour, Neigh: &n})
		}
	}
	rs, err := c.t.Pod.AllRoutes()
	c.failed(err)
	for _, r := range rs {
		for _, l := range c.pods {
			if l.Index == r.Oif {
				r.Dev = l.Name
				c.addPod(attachment.Resource{Kind: attachment.KindRoute, Route: &r})
			}
		}
	}
	rules, err := c.t.Pod.Rules(attachment.RuleFilter{IPs: c.IPs, Names: names})
	c.failed(err)
	for _, r := range rules {
		c.addPod(attachment.Resource{Kind: attachment.KindRule, Rule: &r})
	}
}

func (c *capture) addPod(r attachment.Resource) {
	r.Share = attachment.Own
	c.Pod = append(c.Pod, r)
}

// podAddresses also stands in for a prevResult that names no address.
func (c *capture) podAddresses(l attachment.Link) {
	as, err := c.t.Pod.Addresses(l)
	c.failed(err)
	for _, a := range as {
		c.addPod(attachment.Resource{Kind: attachment.KindAddress, Address: &a})
		p, err := netip.ParsePrefix(a.CIDR)
		if err == nil && len(c.t.Result.IPs) == 0 && attachment.PodAddress(p.Addr()) && !slices.Contains(c.IPs, p.Addr()) {
			c.IPs = append(c.IPs, p.Addr())
		}
	}
}

// proven reports whether the namespace is the result's: it holds one of its
// addresses and, where the result names host interfaces, the other ends of its veths are among them. The next pod may
// have the address alone.
func (c *capture) proven() bool {
	holds := slices.ContainsFunc(c.Pod, func(r attachment.Resource) bool {
		if r.Address == nil {
			return false
		}
		p, err := netip.ParsePrefix(r.Address.CIDR)
		return err == nil && slices.Contains(c.t.Result.IPs, p.Addr())
	})
	if !holds {
		return false
	}
	var named []string
	for _, i := range c.t.Result.Interfaces {
		if i.Sandbox == "" {
			named = append(named, i.Name)
		}
	}
	for _, p := range c.pods {
		if len(named) == 0 || p.Kind != "veth" || p.ParentNetnsID < 0 || p.ParentNetnsID != c.t.Pod.hostNSID() {
			continue
		}
		l, err := c.host.LinkByIndex(p.Parent)
		if c.failed(err) || l == nil || !slices.Contains(named, l.Name) {
			return false
		}
	}
	return true
}
