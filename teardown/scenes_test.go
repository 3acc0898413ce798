package teardown

import (
	"maps"

	"github.com/backstop-cni/backstop/attachment"
)

func scenes() map[string]scene {
	all := map[string]scene{}
	for _, some := range []map[string]scene{ordinary(), identities(), claims(), kernelsWord(), reports()} {
		maps.Copy(all, some)
	}
	return all
}

// What pod c1 of these scenes has: a veth, two rules and a host route.
var (
	c1     = veth("veth1", 12)
	c1To   = rule("512: to 10.0.0.2 lookup 254")
	c1From = rule("1536: from 10.0.0.2 lookup 100")
	c1Rt   = route("10.0.0.2", c1, 254)
)

func pod() *attachment.Record {
	return record("c1", "10.0.0.2", own(c1), own(c1To), own(c1From), own(c1Rt))
}

func whole() *node {
	return &node{links: []attachment.Link{c1}, rules: []attachment.Rule{c1To, c1From}, routes: []attachment.Route{c1Rt}}
}

func ordinary() map[string]scene {
	cni0, ifb := link("bridge", "cni0", 4), link("ifb", "bwp1", 13)
	entry := neigh("10.0.0.2", c1)
	port := attachment.Neighbour{Family: 7, IfIndex: 12, Dev: "veth1", MAC: "0a:58:0a:00:00:02", State: 0x40}
	everything := record("c1", "10.0.0.2", own(ifb), shared(cni0), own(c1), fdb(port), own(entry), own(c1Rt), own(c1From), own(c1To), shared(route("default", cni0, 100)))
	full := whole()
	full.links = append(full.links, ifb, cni0)
	full.neighs, full.fdb = []attachment.Neighbour{entry}, []attachment.Neighbour{port}

	blackhole := route("10.0.0.2", attachment.Link{}, 100)
	blackhole.Type = "blackhole"

	superseded := pod()
	older := own(rule("1536: from 10.0.0.7 lookup 100"))
	older.Superseded = true
	superseded.Resources = append(superseded.Resources, older)
	withOlder := whole()
	withOlder.rules = append(withOlder.rules, *older.Rule)

	twice := whole()
	twice.rules = append(twice.rules, c1To, c1From)

	unreadable := whole()
	unreadable.fails = map[string]error{}
	for _, reading := range []string{"link", "rules", "routes over", "routes in", "neighbours", "fdb"} {
		unreadable.fails[reading] = errKernel
	}

	physical := attachment.Link{Index: 2, Name: "eth1", MAC: "aa:bb:cc:00:00:02"}
	vlan := link("vlan", "vlan7", 7)
	return map[string]scene{
		"own-and-shared":   {rec: everything, node: full},
		"gone":             {rec: pod(), node: &node{}},
		"partly-gone":      {rec: pod(), node: &node{rules: []attachment.Rule{c1From}}},
		"nothing-recorded": {rec: record("c1", "10.0.0.2"), node: whole()},
		"superseded":       {rec: superseded, node: withOlder},
		"identical-twice":  {rec: pod(), node: twice},
		"unreadable":       {rec: record("c1", "10.0.0.2", own(c1), own(c1To), own(c1Rt), own(blackhole), own(entry), fdb(port)), node: unreadable},
		"blackhole":        {rec: record("c1", "10.0.0.2", own(blackhole)), node: &node{routes: []attachment.Route{blackhole, route("10.0.0.2", attachment.Link{}, 101)}}},
		"never-deleted": {
			rec:  record("c1", "10.0.0.2", own(physical), own(vlan), own(link("bridge", "cni0", 4))),
			node: &node{links: []attachment.Link{physical, vlan, link("bridge", "cni0", 4)}},
		},
		"other-boot":       {rec: elsewhere(func(n *attachment.Node) { n.Now.BootID = "b0" }), node: whole()},
		"other-host-netns": {rec: elsewhere(func(n *attachment.Node) { n.Netns.Ino++ }), node: whole()},
	}
}

func elsewhere(change func(*attachment.Node)) *attachment.Record {
	r := pod()
	r.Resources = append(r.Resources, shared(link("bridge", "cni0", 4)))
	change(&r.Node)
	return r
}

// identities are scenes in which something like the recorded thing is there.
func identities() map[string]scene {
	const calicoMAC = "ee:ee:ee:ee:ee:ee"
	cali := func(name string, index int) attachment.Link {
		l := veth(name, index)
		l.MAC = calicoMAC
		return l
	}
	reused := veth("veth9", 12)
	reused.MAC = "aa:bb:cc:00:00:99"
	renamed := c1
	renamed.Name = "was-veth1"
	alike := rule("1536: from 10.0.0.2 iif veth9 lookup 100")
	guarded := whole()
	guarded.rules = []attachment.Rule{c1To, alike, c1From}
	behind := whole()
	behind.rules = []attachment.Rule{c1To, c1From, alike}
	return map[string]scene{
		"index-reused":             {rec: pod(), node: &node{links: []attachment.Link{reused}}},
		"index-reused-other-kind":  {rec: pod(), node: &node{links: []attachment.Link{link("vxlan", "veth1", 12)}}},
		"renamed":                  {rec: pod(), node: &node{links: []attachment.Link{renamed, veth("veth9", 9)}}},
		"renamed-with-shared-mac":  {rec: record("c1", "", own(cali("cali1", 12))), node: &node{links: []attachment.Link{cali("cali2", 12), cali("cali3", 14)}}},
		"shared-mac-but-own-name":  {rec: record("c1", "", own(cali("cali1", 12))), node: &node{links: []attachment.Link{cali("cali1", 12), cali("cali3", 14)}}},
		"renamed-mac-unknown":      {rec: pod(), node: &node{links: []attachment.Link{renamed}, fails: map[string]error{"links": errKernel}}},
		"other-rules-and-routes":   {rec: pod(), node: &node{rules: []attachment.Rule{rule("513: to 10.0.0.2 lookup 254"), rule("1536: from 10.0.0.2 lookup 101"), rule("1536: from 10.0.0.2 lookup 100 proto 17")}, routes: []attachment.Route{route("10.0.0.2", veth("veth9", 9), 254), route("10.0.0.2", c1, 100)}}},
		"neighbours-rule-is-first": {rec: pod(), node: guarded},
		"neighbours-rule-is-after": {rec: pod(), node: behind},
	}
}
