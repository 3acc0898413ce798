package kernel_test

import (
	"fmt"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

func TestLinkKinds(t *testing.T) {
	n := enterNode(t)
	h := n.handle()
	n.ip("link add va type veth peer name vb", "link add br0 type bridge", "link add ifb0 type ifb", "link add mv0 link va type macvlan",
		"link add vx0 type vxlan id 5 dstport 4789 dev va", "tuntap add dev tap0 mode tap", "link set va mtu 1400", "link set vb master br0")
	index := func(name string) int {
		l, err := h.LinkByName(name)
		if err != nil || l == nil {
			t.Fatalf("link %s: %v, %v", name, l, err)
		}
		return l.Index
	}
	for name, want := range map[string]attachment.Link{
		"lo":   {Kind: "", MTU: 65536},
		"va":   {Kind: "veth", MTU: 1400, Parent: index("vb")},
		"vb":   {Kind: "veth", MTU: 1500, Parent: index("va"), Master: index("br0")},
		"br0":  {Kind: "bridge", MTU: 1500},
		"ifb0": {Kind: "ifb", MTU: 1500},
		"mv0":  {Kind: "macvlan", MTU: 1500, Parent: index("va")}, // made while its parent's MTU was 1500
		"vx0":  {Kind: "vxlan", MTU: 1450},
		"tap0": {Kind: "tun", MTU: 1500},
	} {
		l, err := h.LinkByName(name)
		if err != nil || l == nil {
			t.Errorf("%s: %v, %v", name, l, err)
			continue
		}
		if len(l.MAC) != 17 && name != "lo" {
			t.Errorf("%s has MAC %q", name, l.MAC)
		}
		if name == "vx0" || name == "mv0" { // some kernels let the lower device's MTU through
			want.MTU = l.MTU
		}
		want.Index, want.Name, want.MAC, want.ParentNetnsID = l.Index, name, l.MAC, -1
		if *l != want {
			t.Errorf("%s: %+v, want %+v", name, *l, want)
		}
		if again, err := h.LinkByIndex(l.Index); err != nil || again == nil || *again != *l {
			t.Errorf("%s by index: %+v, %v", name, again, err)
		}
		if removable := l.Removable(); removable != (l.Kind == "veth" || l.Kind == "ifb") {
			t.Errorf("%s: removable %v", name, removable)
		}
	}
}

// The two ends of a veth find each other by index and the id under which each namespace knows the other.
func TestPeerInAnotherNamespace(t *testing.T) {
	n, pod, other := enterNode(t), newPod(t), newPod(t)
	host := n.node()
	n.ip("link add first type veth peer name eth0 netns "+other.path, "link add hv type veth peer name eth0 netns "+pod.path,
		"link add mv link hv type macvlan", "link set mv name eth1 netns "+pod.path)
	h := n.handle()
	hv, err := h.LinkByName("hv")
	if err != nil || hv == nil {
		t.Fatal(hv, err)
	}
	in, id, err := openPod(t, pod.path, host)
	if err != nil {
		t.Fatal(err)
	}
	eth0, err := in.LinkByName("eth0")
	if err != nil || eth0 == nil {
		t.Fatal(eth0, err)
	}
	if hv.Parent != eth0.Index || eth0.Parent != hv.Index {
		t.Errorf("the ends do not name each other: %+v, %+v", hv, eth0)
	}
	if nsid := h.NSID(pod.path, id); nsid != hv.ParentNetnsID || nsid < 0 {
		t.Errorf("the host knows the pod as %d, its veth says %d", nsid, hv.ParentNetnsID)
	}
	_, otherID, err := openPod(t, other.path, host)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := h.NSID(pod.path, id), h.NSID(other.path, otherID); a == b {
		t.Errorf("both pods have id %d", a)
	}
	if nsid := h.NSID(pod.path, otherID); nsid != -1 {
		t.Errorf("a path that leads elsewhere by now has id %d", nsid)
	}
	if nsid := h.NSID("/proc/self/ns/mnt", id); nsid != -1 {
		t.Errorf("a path to a mount namespace has id %d", nsid)
	}
	if nsid := h.NSID(t.TempDir()+"/missing", id); nsid != -1 {
		t.Errorf("no path has id %d", nsid)
	}
	eth1, err := in.LinkByName("eth1")
	if err != nil || eth1 == nil || eth1.Kind != "macvlan" || eth1.Parent != hv.Index || eth1.ParentNetnsID != eth0.ParentNetnsID {
		t.Errorf("a macvlan that was moved into the pod: %+v, %v; want parent %d in netns %d", eth1, err, hv.Index, eth0.ParentNetnsID)
	}
	if l, err := h.LinkByIndex(eth1.Index + 100); l != nil || err != nil {
		t.Errorf("an index that nothing has: %v, %v", l, err)
	}
}

func TestAddresses(t *testing.T) {
	n, pod := enterNode(t), newPod(t)
	n.ip("link add hv type veth peer name eth0 netns "+pod.path, "link set hv up")
	pod.ip("link set eth0 up", "addr add 10.0.0.5/24 dev eth0", "addr add 10.0.0.6 peer 10.9.9.9 dev eth0", "addr add fd00::5/64 dev eth0 nodad",
		"addr add fe80::5/64 dev eth0 nodad", "link add eth1 type ifb", "link set eth1 up", "addr add 10.0.1.1/24 dev eth1")
	in, _, err := openPod(t, pod.path, n.node())
	if err != nil {
		t.Fatal(err)
	}
	eth0, err := in.LinkByName("eth0")
	if err != nil || eth0 == nil {
		t.Fatal(eth0, err)
	}
	got, err := in.Addresses(*eth0)
	want := "10.0.0.5/24 dev eth0\n10.0.0.6/32 dev eth0\nfd00::5/64 dev eth0"
	if err != nil || texts(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, texts(got), want)
	}
	if got, err := in.Addresses(attachment.Link{Index: 4711, Name: "gone"}); len(got) != 0 || err != nil {
		t.Errorf("of a link that is gone: %v, %v", got, err)
	}
}

// Answers that are larger than one netlink message come complete.
func TestManyLinks(t *testing.T) {
	n := enterNode(t)
	const many = 150
	var lines []string
	for i := range many {
		lines = append(lines, fmt.Sprintf("link add ifb%d type ifb", i))
	}
	n.ip(lines...)
	all, err := n.handle().Links()
	if err != nil || len(all) != many+1 {
		t.Errorf("%d links, %v; want %d", len(all), err, many+1)
	}
}

func TestDeleteOfTheWrongKind(t *testing.T) {
	n := enterNode(t)
	h := n.handle()
	address := attachment.Resource{Kind: attachment.KindAddress, Share: attachment.Own, Address: &attachment.Address{Dev: "lo", CIDR: "127.0.0.1/8"}}
	before := n.everything()
	for what, r := range map[string]attachment.Resource{
		"an address": address, "nothing": {Kind: attachment.KindLink},
		"lo":                             ofLink(attachment.Link{Index: 1, Name: "lo"}),
		"a rule without its attributes":  ofRule(attachment.Rule{Family: unix.AF_INET, Priority: 32766}),
		"a route without its attributes": ofRoute(attachment.Route{Family: unix.AF_INET, Dst: "default"}),
	} {
		if err := h.Delete(r); err == nil {
			t.Errorf("%s: deleted", what)
		}
	}
	if lost := minus(before, n.everything()); len(lost) > 0 {
		t.Errorf("%q went", lost)
	}
}
