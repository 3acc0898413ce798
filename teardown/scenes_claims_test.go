package teardown

import "github.com/backstop-cni/backstop/attachment"

// Pod c2 has the address after c1. Its veth is its own, the rules look like c1's.
var (
	c2     = veth("veth2", 22)
	c2Rt   = route("10.0.0.2", c2, 254)
	c2From = rule("1536: from 10.0.0.2 lookup 200")
)

func newPod() *attachment.Record {
	return record("c2", "10.0.0.2", own(c2), own(c1To), own(c2From), own(c2Rt))
}

func both() *node {
	n := whole()
	n.links = append(n.links, c2)
	n.rules = append(n.rules, c2From)
	n.routes = []attachment.Route{c2Rt, c1Rt}
	return n
}

// claims are scenes in which another record has the same things.
func claims() map[string]scene {
	twin := func() *attachment.Record { r := pod(); r.ContainerID = "c9"; return r }
	foundOnly := newPod()
	foundOnly.Resources[1].Share = attachment.Shared
	return map[string]scene{
		"claimed-by-live":         {rec: pod(), node: both(), others: []Other{live(newPod())}},
		"not-claimed-by-dead":     {rec: pod(), node: both(), others: []Other{dead(newPod())}},
		"claimed-by-unknown":      {rec: pod(), node: both(), others: []Other{unknown(newPod())}},
		"claimed-by-the-live-one": {rec: pod(), node: both(), others: []Other{dead(twin()), live(newPod())}},
		"claimed-whole":           {rec: pod(), node: whole(), others: []Other{live(twin())}},
		"shared-is-no-claim":      {rec: pod(), node: both(), others: []Other{live(foundOnly)}},
	}
}

// kernelsWord are scenes between a new pod's primary and its backstop ADD: no
// record names the pod, a host route does.
func kernelsWord() map[string]scene {
	byDefault := whole()
	byDefault.routes = []attachment.Route{route("default", link("", "eth0", 2), 254)}
	subnet := whole()
	subnet.routes = []attachment.Route{route("10.0.0.0/24", link("bridge", "cni0", 4), 254)}
	nowhere := whole()
	blackhole := route("10.0.0.2", attachment.Link{}, 254)
	blackhole.Type = "blackhole"
	nowhere.routes = []attachment.Route{blackhole}
	several := whole() // next hops over more than one link: no single device
	several.routes = []attachment.Route{route("10.0.0.2", attachment.Link{}, 254)}
	pair := own(rule("5: from 10.0.0.2 to 10.0.0.3 lookup 100")) // the second address has a stranger by now
	pairNode := &node{links: []attachment.Link{c1, c2}, rules: []attachment.Rule{*pair.Rule}, routes: []attachment.Route{c1Rt, route("10.0.0.3", c2, 254)}}
	noLookup := whole()
	noLookup.fails = map[string]error{"route to": errKernel}

	branch := link("vlan", "vlan7", 7) // a branch ENI's: not its own to delete, the route over it is
	overBranch := route("10.0.0.2", branch, 254)
	branchPod := record("c1", "10.0.0.2", shared(branch), own(c1To), own(overBranch))
	branchNode := &node{links: []attachment.Link{branch}, rules: []attachment.Rule{c1To}, routes: []attachment.Route{overBranch}}

	iif := rule("10: iif veth1 lookup 101") // goes by the name alone, which a new pod of the same name has, too
	byName := record("c1", "", own(c1), own(iif))
	successor := func() *node { return &node{links: []attachment.Link{veth("veth1", 22)}, rules: []attachment.Rule{iif}} }
	noName := successor()
	noName.fails = map[string]error{"link by name": errKernel}
	eth0 := link("", "eth0", 2)
	pairIif := rule("10: to 10.0.0.2 iif eth0 lookup 101")

	v6 := veth("veth6", 26)
	v6Rule := rule("512: to fd00::2 lookup 254")
	return map[string]scene{
		"kernel-claims":                  {rec: pod(), node: both()},
		"kernel-claims-v6":               {rec: record("c1", "fd00::2", own(v6Rule)), node: &node{links: []attachment.Link{v6}, rules: []attachment.Rule{v6Rule}, routes: []attachment.Route{route("fd00::2", v6, 254)}}},
		"kernel-claim-of-a-dead-record":  {rec: pod(), node: both(), others: []Other{dead(record("c2", "10.0.0.2", own(c2)))}},
		"kernel-claim-of-a-live-record":  {rec: pod(), node: both(), others: []Other{live(record("c2", "10.0.0.2", own(c2)))}},
		"kernel-claims-by-name":          {rec: byName, node: successor()},
		"kernel-claim-by-a-known-name":   {rec: byName, node: successor(), others: []Other{live(record("c2", "", own(veth("veth1", 22)), own(rule("10: iif veth1 lookup 102"))))}},
		"kernel-claim-by-a-name-fails":   {rec: byName, node: noName},
		"no-kernel-claim-by-own-name":    {rec: byName, node: &node{links: []attachment.Link{c1}, rules: []attachment.Rule{iif}}},
		"no-kernel-claim-by-shared-name": {rec: record("c1", "", shared(branch), own(rule("10: iif vlan7 lookup 101"))), node: &node{links: []attachment.Link{branch}, rules: []attachment.Rule{rule("10: iif vlan7 lookup 101")}}},
		"no-kernel-claim-by-a-side-name": {rec: record("c1", "10.0.0.2", own(pairIif)), node: &node{links: []attachment.Link{eth0}, rules: []attachment.Rule{pairIif}}},
		"no-kernel-claim-by-own-link":    {rec: pod(), node: whole()},
		"no-kernel-claim-by-own-route":   {rec: branchPod, node: branchNode},
		"no-kernel-claim-by-default":     {rec: pod(), node: byDefault},
		"no-kernel-claim-by-subnet":      {rec: pod(), node: subnet},
		"no-kernel-claim-without-a-link": {rec: pod(), node: nowhere},
		"kernel-claims-several-links":    {rec: pod(), node: several},
		"kernel-claims-second-address":   {rec: record("c1", "10.0.0.2", own(c1), own(c1Rt), pair), node: pairNode},
		"kernel-claim-cannot-be-asked":   {rec: pod(), node: noLookup},
		"kernel-claims-rules-of-it-only": {rec: record("c1", "10.0.0.2", own(c1), own(rule("10: iif veth1 lookup 101")), own(c1To)), node: &node{links: []attachment.Link{c1, c2}, rules: []attachment.Rule{rule("10: iif veth1 lookup 101"), c1To}, routes: []attachment.Route{c2Rt}}},
	}
}

// reports are scenes with the values of public reports, by their names.
func reports() map[string]scene {
	const ip = "10.109.167.233"
	to, from := rule("512: to "+ip+" lookup 254"), rule("1536: from "+ip+" lookup 2")
	eni := veth("eni8c1b2a3d4e5", 31)

	vlan := link("vlan", "vlanaad671050aa", 41)
	stale, fresh := rule("10: iif vlanaad671050aa lookup 101"), rule("10: iif vlanaad671050aa lookup 102")

	egress, next := veth("v6if0", 51), veth("v6if0", 52)
	egressRt, nextRt := route("fd00::ac:02", egress, 254), route("fd00::ac:02", next, 254)

	statefulset, successor := veth("cali1234567890a", 61), veth("cali1234567890a", 67)
	return map[string]scene{
		"aws-vpc-cni-2048": {
			rec:  record("c1", ip, own(eni), own(to), own(from), own(route(ip, eni, 254))),
			node: &node{rules: []attachment.Rule{to, from}},
		},
		"aws-vpc-cni-1375": {
			rec:    record("c1", "", shared(vlan), own(stale)),
			node:   &node{rules: []attachment.Rule{stale, fresh}},
			others: []Other{live(record("c2", "", shared(vlan), own(fresh)))},
		},
		"aws-vpc-cni-3702": {
			rec:    record("c1", "fd00::ac:02", own(egress), own(egressRt)),
			node:   &node{links: []attachment.Link{next}, routes: []attachment.Route{nextRt}},
			others: []Other{live(record("c2", "fd00::ac:02", own(next), own(nextRt)))},
		},
		"calico-10375": {
			rec:    record("old", "10.0.0.2", own(statefulset), own(route("10.0.0.2", statefulset, 254))),
			node:   &node{links: []attachment.Link{successor}, routes: []attachment.Route{route("10.0.0.2", successor, 254)}},
			others: []Other{live(record("new", "10.0.0.2", own(successor), own(route("10.0.0.2", successor, 254))))},
		},
	}
}
