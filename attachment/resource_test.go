package attachment

import (
	"strings"
	"testing"
)

func TestResourceEqual(t *testing.T) {
	rule := Rule{Family: 2, Raw: []byte("rule")}
	route := Route{Family: 2, Dst: "10.0.0.2", Raw: []byte("route")}
	neigh := Neighbour{Family: 2, IfIndex: 12, Dst: "10.0.0.2", MAC: "aa:bb:cc:00:00:01", State: 0x80}
	addr := Address{Dev: "eth0", CIDR: "10.0.0.2/24"}
	base := map[Kind]Resource{
		KindLink: {Kind: KindLink, Link: &veth}, KindRule: {Kind: KindRule, Rule: &rule}, KindRoute: {Kind: KindRoute, Route: &route},
		KindNeighbour: {Kind: KindNeighbour, Neigh: &neigh}, KindFDB: {Kind: KindFDB, Neigh: &neigh}, KindAddress: {Kind: KindAddress, Address: &addr},
	}
	for ka, a := range base {
		for kb, b := range base {
			if got := a.Equal(b); got != (ka == kb) {
				t.Errorf("%s and %s: Equal says %v", ka, kb, got)
			}
		}
		if empty := (Resource{Kind: ka}); a.Equal(empty) || empty.Equal(a) || empty.Equal(empty) {
			t.Errorf("%s without content is equal to something", ka)
		}
	}
	for name, c := range map[string]struct {
		kind   Kind
		change func(*Resource)
		want   bool
	}{
		"own or shared":           {KindRule, func(r *Resource) { r.Share = Shared }, true},
		"superseded":              {KindRule, func(r *Resource) { r.Superseded = true }, true},
		"link's MTU":              {KindLink, func(r *Resource) { l := *r.Link; l.MTU = 9001; r.Link = &l }, true},
		"link's index":            {KindLink, func(r *Resource) { l := *r.Link; l.Index++; r.Link = &l }, false},
		"rule's dump":             {KindRule, func(r *Resource) { r.Rule = &Rule{Family: 2, Raw: []byte("other")} }, false},
		"rule's family":           {KindRule, func(r *Resource) { r.Rule = &Rule{Family: 10, Raw: []byte("rule")} }, false},
		"route's device name":     {KindRoute, func(r *Resource) { x := *r.Route; x.Dev = "veth1"; r.Route = &x }, true},
		"route's dump":            {KindRoute, func(r *Resource) { x := *r.Route; x.Raw = []byte("other"); r.Route = &x }, false},
		"route's family":          {KindRoute, func(r *Resource) { x := *r.Route; x.Family = 10; r.Route = &x }, false},
		"neighbour's MAC":         {KindNeighbour, func(r *Resource) { x := *r.Neigh; x.MAC = ""; r.Neigh = &x }, false},
		"neighbour's link":        {KindNeighbour, func(r *Resource) { x := *r.Neigh; x.IfIndex++; r.Neigh = &x }, false},
		"forwarding entry's vlan": {KindFDB, func(r *Resource) { x := *r.Neigh; x.Vlan = 7; r.Neigh = &x }, false},
		"address":                 {KindAddress, func(r *Resource) { r.Address = &Address{Dev: "eth0", CIDR: "10.0.0.2/32"} }, false},
	} {
		o := base[c.kind]
		c.change(&o)
		if base[c.kind].Equal(o) != c.want || o.Equal(base[c.kind]) != c.want {
			t.Errorf("%s: want %v both ways", name, c.want)
		}
	}
}

func TestValidateWantsKindAndContentToAgree(t *testing.T) {
	for name, c := range map[string]struct {
		r    Resource
		want string // in the error; empty when it is valid
	}{
		"link":             {Resource{Kind: KindLink, Share: Own, Link: &veth}, ""},
		"shared rule":      {Resource{Kind: KindRule, Share: Shared, Rule: &Rule{}}, ""},
		"route":            {Resource{Kind: KindRoute, Share: Own, Route: &Route{}}, ""},
		"neighbour":        {Resource{Kind: KindNeighbour, Share: Own, Neigh: &Neighbour{}}, ""},
		"forwarding entry": {Resource{Kind: KindFDB, Share: Own, Neigh: &Neighbour{}}, ""},
		"address":          {Resource{Kind: KindAddress, Share: Own, Address: &Address{}}, ""},
		"empty":            {Resource{Kind: KindLink, Share: Own}, "without its content"},
		"other content":    {Resource{Kind: KindRule, Share: Own, Link: &veth}, "without its content"},
		// it would be printed and deleted as the link
		"two contents": {Resource{Kind: KindRule, Share: Own, Rule: &Rule{}, Link: &veth}, "content of 2 kinds"},
		"no kind":      {Resource{Share: Own, Link: &veth}, `kind ""`},
		"unknown kind": {Resource{Kind: "ovs-port", Share: Own, Link: &veth}, `kind "ovs-port"`},
		"no share":     {Resource{Kind: KindLink, Link: &veth}, `share ""`},
		"odd share":    {Resource{Kind: KindLink, Share: "mine", Link: &veth}, `share "mine"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.r.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestResourceInWords(t *testing.T) {
	for want, r := range map[string]Resource{
		"link veth1 (veth, index 12)":        {Kind: KindLink, Link: &veth},
		"rule 10: from 10.0.0.2 lookup main": {Kind: KindRule, Rule: &Rule{Priority: 10, Src: "10.0.0.2", Table: 254}},
		"route blackhole fd00::2 via fe80::1 dev if7 table 2 metric 1024": {
			Kind: KindRoute, Route: &Route{Type: "blackhole", Dst: "fd00::2", Gateway: "fe80::1", Oif: 7, Table: 2, Metric: 1024}},
		"route default dev veth1 table local":                {Kind: KindRoute, Route: &Route{Dst: "default", Oif: 12, Dev: "veth1", Table: 255}},
		"neighbour 10.0.0.2 lladdr aa:bb:cc:00:00:01 dev e0": {Kind: KindNeighbour, Neigh: &Neighbour{Dst: "10.0.0.2", MAC: "aa:bb:cc:00:00:01", Dev: "e0"}},
		"fdb aa:bb:cc:00:00:01 vlan 7 dev if12":              {Kind: KindFDB, Neigh: &Neighbour{MAC: "aa:bb:cc:00:00:01", Vlan: 7, IfIndex: 12}},
		"address 10.0.0.2/24 dev eth0":                       {Kind: KindAddress, Address: &Address{Dev: "eth0", CIDR: "10.0.0.2/24"}},
		"rule (empty)":                                       {Kind: KindRule},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
