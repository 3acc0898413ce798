package attachment

import "testing"

func TestLinkSame(t *testing.T) {
	const calico = "ee:ee:ee:ee:ee:ee"
	pod := Link{Index: 12, Name: "veth1", Kind: "veth", MAC: "aa:bb:cc:00:00:01"}
	for name, c := range map[string]struct {
		a, b Link
		want bool
	}{
		"itself":               {pod, pod, true},
		"another MAC":          {pod, Link{Index: 12, Name: "veth1", Kind: "veth", MAC: "aa:bb:cc:00:00:02"}, true},
		"renamed":              {pod, Link{Index: 12, Name: "cali9", Kind: "veth", MAC: pod.MAC}, true},
		"moved to a bridge":    {pod, Link{Index: 12, Name: "veth1", Kind: "veth", MAC: pod.MAC, Master: 4, MTU: 9001}, true},
		"renamed, other MAC":   {pod, Link{Index: 12, Name: "cali9", Kind: "veth", MAC: "aa:bb:cc:00:00:02"}, false},
		"the name alone":       {pod, Link{Index: 13, Name: "veth1", Kind: "veth", MAC: "aa:bb:cc:00:00:02"}, false},
		"name and MAC":         {pod, Link{Index: 13, Name: "veth1", Kind: "veth", MAC: pod.MAC}, false},
		"another kind":         {pod, Link{Index: 12, Name: "veth1", Kind: "macvlan", MAC: pod.MAC}, false},
		"physical":             {pod, Link{Index: 12, Name: "veth1", MAC: pod.MAC}, false},
		"renamed, both no MAC": {Link{Index: 5, Name: "a", Kind: "ifb"}, Link{Index: 5, Name: "b", Kind: "ifb"}, false},
		// true by this rule alone: whoever asks must count the links with this MAC (SameByMAC)
		"Calico's, renamed": {Link{Index: 7, Name: "cali1", Kind: "veth", MAC: calico}, Link{Index: 7, Name: "cali2", Kind: "veth", MAC: calico}, true},
	} {
		if got := c.a.Same(c.b); got != c.want || c.b.Same(c.a) != got {
			t.Errorf("%s: got %v, want %v both ways", name, got, c.want)
		}
	}
}

func TestSameByMACNeedsAMAC(t *testing.T) {
	if (Link{Name: "a"}).SameByMAC(Link{Name: "b"}) {
		t.Error("two links without MAC are taken for one")
	}
}

// Everything else is shared or given back, whatever a prevResult says.
func TestRemovableKinds(t *testing.T) {
	for kind, want := range map[string]bool{
		"veth": true, "ifb": true,
		"": false, "bridge": false, "vxlan": false, "vlan": false, "macvlan": false, "ipvlan": false, "bond": false,
		"openvswitch": false, "wireguard": false, "tun": false, "dummy": false, "VETH": false,
	} {
		if got := (Link{Kind: kind}).Removable(); got != want {
			t.Errorf("kind %q: removable %v, want %v", kind, got, want)
		}
	}
}

// The AWS VPC CNI makes a vlan link for each pod of a branch ENI; all others are the node's.
func TestRemovableVLANs(t *testing.T) {
	for name, want := range map[string]bool{"vlan.eth.7": true, "vlan7": false, "eth0.7": false, "vlan.eth": false, "my-vlan.eth.7": false} {
		if got := (Link{Name: name, Kind: "vlan"}).Removable(); got != want {
			t.Errorf("%s: removable %v, want %v", name, got, want)
		}
	}
	if (Link{Name: "vlan.eth.7", Kind: "macvlan"}).Removable() {
		t.Error("a macvlan of that name is removable")
	}
}

func TestLinkInWords(t *testing.T) {
	for want, l := range map[string]Link{
		"veth1 (veth, index 12)":   {Index: 12, Name: "veth1", Kind: "veth"},
		"eth0 (physical, index 2)": {Index: 2, Name: "eth0"},
	} {
		if got := l.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
