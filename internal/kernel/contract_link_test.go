package kernel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

func TestLinks(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.must("link add br0 address 02:00:00:00:aa:01 type bridge", "link add hv address 02:00:00:00:aa:02 mtu 1400 type veth peer name eth0 netns POD",
			"link set hv master br0", "link add va type veth peer name vb", "link add ifb7 index 77 type ifb")
		br, a, b := w.link("br0"), w.link("va"), w.link("vb")
		if br.Kind != "bridge" || br.MAC != "02:00:00:00:aa:01" || br.Master != 0 || br.ParentNetnsID != -1 || br.Parent != 0 {
			t.Errorf("bridge: %+v", br)
		}
		hv := w.link("hv")
		// The first namespace that anything leads to has id 0; in it the peer is the first link after lo.
		want := attachment.Link{Index: hv.Index, Name: "hv", Kind: "veth", MAC: "02:00:00:00:aa:02", MTU: 1400, Master: br.Index, Parent: 2, ParentNetnsID: 0}
		if *hv != want {
			t.Errorf("a veth whose peer is in a pod: %+v, want %+v", *hv, want)
		}
		if a.Parent != b.Index || b.Parent != a.Index || a.ParentNetnsID != -1 || a.Kind != "veth" {
			t.Errorf("a veth pair: %+v, %+v", a, b)
		}
		if l, err := w.LinkByIndex(77); err != nil || l == nil || l.Name != "ifb7" || l.Kind != "ifb" {
			t.Errorf("by index: %v, %v", l, err)
		}
		lo := w.link("lo")
		if lo.Index != 1 || lo.Kind != "" || lo.Removable() {
			t.Errorf("lo, which stands for every device without a kind: %+v", lo)
		}
		for _, name := range []string{"missing", "", "ifb", "ifb77", "a-name-of-16-byte", "dummy5e884898da28047151d0e56f8dc6292773603d0d"} {
			if l, err := w.LinkByName(name); l != nil || err != nil {
				t.Errorf("name %q: %v, %v", name, l, err)
			}
		}
		if l, err := w.LinkByIndex(78); l != nil || err != nil {
			t.Errorf("index 78: %v, %v", l, err)
		}
		all, err := w.Links()
		var names []string
		for _, l := range all {
			names = append(names, l.Name)
		}
		slices.Sort(names)
		if err != nil || strings.Join(names, " ") != "br0 hv ifb7 lo va vb" {
			t.Errorf("all: %v, %v", names, err)
		}
	})
}

// TestDeletedVeth takes its routes, neighbours and forwarding entries with it, and leaves rules, and everything
// of the veth beside it.
func TestDeletedVeth(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.must("link add br0 type bridge", "link set br0 up")
		furnish := func(name, ip, mac string) {
			w.veth(name)
			w.must("link set "+name+" master br0", "route add "+ip+" dev "+name, "route add "+ip+" dev "+name+" table 1000",
				"-6 route add fd00::"+ip+" dev "+name, "neigh add "+ip+" lladdr "+mac+" dev "+name+" nud permanent",
				"neigh add fd00::"+ip+" lladdr "+mac+" dev "+name+" nud permanent", "fdb add "+mac+" dev "+name+" master static")
		}
		furnish("hv1", "10.0.0.1", "02:00:00:00:00:21")
		before := w.list()
		furnish("hv2", "10.0.0.2", "02:00:00:00:00:22")
		w.must("rule add pref 10 iif hv2 lookup 1000", "rule add pref 512 to 10.0.0.2 lookup main")
		rules := texts(w.rules(attachment.RuleFilter{IPs: ips("10.0.0.2"), Names: []string{"hv2"}}))
		hv2 := *w.link("hv2")
		w.deleted(ofLink(hv2))
		left := minus(w.list(), before)
		if len(left) != 2 || !strings.HasPrefix(left[0], "rule") || !strings.HasPrefix(left[1], "rule") {
			t.Errorf("left over:\n%s", strings.Join(left, "\n"))
		}
		if lost := minus(before, w.list()); len(lost) > 0 {
			t.Errorf("its neighbour lost:\n%s", strings.Join(lost, "\n"))
		}
		if now := texts(w.rules(attachment.RuleFilter{IPs: ips("10.0.0.2"), Names: []string{"hv2"}})); now != rules {
			t.Errorf("rules were\n%s\nare\n%s", rules, now)
		}
		for what, n := range map[string]func(int) (int, error){
			"routes":     func(i int) (int, error) { x, err := w.RoutesOver(i); return len(x), err },
			"neighbours": func(i int) (int, error) { x, err := w.Neighbours(i); return len(x), err },
			"fdb":        func(i int) (int, error) { x, err := w.FDB(i); return len(x), err },
		} {
			if n, err := n(hv2.Index); n != 0 || err != nil {
				t.Errorf("%s of the link that is gone: %d, %v", what, n, err)
			}
		}
		isGone(t, "the link once more", w.Delete(ofLink(hv2)))
	})
}

func TestWhatALinkTakesWithIt(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.must("link add va type veth peer name vb", "link add br0 type bridge", "link set va up", "link set vb up", "link set vb master br0",
			"link add mv link va type macvlan", "route add 10.0.0.1 dev vb", "fdb add 02:00:00:00:00:21 dev vb master static")
		if err := w.Delete(ofLink(*w.link("br0"))); err != nil {
			t.Fatal(err)
		}
		if b := w.link("vb"); b.Master != 0 {
			t.Errorf("a port of a bridge that is gone: %+v", b)
		}
		if fdb, err := w.FDB(w.link("vb").Index); len(fdb) != 0 || err != nil {
			t.Errorf("forwarding entries of a bridge that is gone: %v, %v", fdb, err)
		}
		w.deleted(ofLink(*w.link("vb")))
		for _, name := range []string{"va", "vb", "mv"} {
			if l, err := w.LinkByName(name); l != nil || err != nil {
				t.Errorf("%s is there after its peer or parent went: %v, %v", name, l, err)
			}
		}
		if err := w.Delete(ofLink(*w.link("lo"))); err == nil {
			t.Error("lo was deleted")
		}
	})
}

func TestNeighbours(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		i := w.veth("v1").Index
		w.veth("v10")
		w.must("neigh add 10.0.0.5 lladdr 02:00:00:00:00:05 dev v1 nud permanent", "neigh add 10.0.0.6 lladdr 02:00:00:00:00:06 dev v1 nud reachable",
			"neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 dev v1 nud stale", "neigh add fd00::5 lladdr 02:00:00:00:00:05 dev v1 nud permanent",
			"neigh add 10.0.0.5 lladdr 02:00:00:00:00:05 dev v10 nud permanent", "neigh add 10.0.0.8 lladdr 02:00:00:00:00:08 dev v1 nud noarp")
		got, err := w.Neighbours(i)
		want := map[attachment.Neighbour]bool{
			{Family: unix.AF_INET, IfIndex: i, Dst: "10.0.0.5", MAC: "02:00:00:00:00:05", State: unix.NUD_PERMANENT}: true,
			{Family: unix.AF_INET6, IfIndex: i, Dst: "fd00::5", MAC: "02:00:00:00:00:05", State: unix.NUD_PERMANENT}: true,
		}
		if err != nil || len(got) != 2 || !want[got[0]] || !want[got[1]] {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, n := range got {
			if lost := w.deleted(ofNeigh(attachment.KindNeighbour, n)); len(lost) != 1 || !strings.Contains(lost[0], n.Dst) {
				t.Errorf("deleting %s took %q", n, lost)
			}
			isGone(t, n.String(), w.Delete(ofNeigh(attachment.KindNeighbour, n)))
		}
	})
}

func TestForwardingEntries(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.must("link add br0 type bridge", "link set br0 up")
		v1 := w.veth("v1")
		w.veth("v10")
		w.must("link set v1 master br0", "link set v10 master br0", "fdb add 02:00:00:00:00:05 dev v1 master static",

			"fdb add 02:00:00:00:00:07 dev v1 master local", "fdb add 02:00:00:00:00:08 dev v10 master static")
		got, err := w.FDB(v1.Index)
		got = slices.DeleteFunc(got, func(n attachment.Neighbour) bool { return n.MAC == v1.MAC }) // the kernel's own
		want := map[attachment.Neighbour]bool{
			{Family: unix.AF_BRIDGE, IfIndex: v1.Index, MAC: "02:00:00:00:00:05", State: unix.NUD_NOARP}:     true,
			{Family: unix.AF_BRIDGE, IfIndex: v1.Index, MAC: "02:00:00:00:00:07", State: unix.NUD_PERMANENT}: true,
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, n := range got {
			if !want[n] {
				t.Errorf("%+v is none of the static ones", n)
			}
			if lost := w.deleted(ofNeigh(attachment.KindFDB, n)); len(lost) != 1 || !strings.Contains(lost[0], n.MAC) {
				t.Errorf("deleting %s took %q", n, lost)
			}
			isGone(t, n.String(), w.Delete(ofNeigh(attachment.KindFDB, n)))
		}
	})
}
