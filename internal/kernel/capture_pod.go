package kernel

import (
	"net/netip"
	"slices"
	"strings"

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
// addresses and, where the result names host interfaces, the other ends of its veths are among them, with the MACs that the
// result gives. The next pod may have the address, and the host link's name, too.
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
	onHost := slices.ContainsFunc(c.t.Result.Interfaces, func(i attachment.Interface) bool { return i.Sandbox == "" })
	for _, p := range c.pods {
		if !c.named(p, false) && c.named(attachment.Link{Name: p.Name}, false) {
			return false // the name is the result's, the MAC is not
		}
		if !onHost || p.Kind != "veth" || p.ParentNetnsID < 0 || p.ParentNetnsID != c.t.Pod.hostNSID() {
			continue
		}
		l, err := c.host.LinkByIndex(p.Parent)
		if c.failed(err) || l == nil || !c.named(*l, true) {
			return false
		}
	}
	return true
}

// named reports whether the result has a link, by its name and, where both say one, its MAC: AWS writes numbers there.
func (c *capture) named(l attachment.Link, onHost bool) bool {
	return slices.ContainsFunc(c.t.Result.Interfaces, func(i attachment.Interface) bool {
		return i.Name == l.Name && (i.Sandbox == "") == onHost && (l.MAC == "" || strings.Count(i.MAC, ":") != 5 || i.MAC == l.MAC)
	})
}
