package kernel_test

import (
	"slices"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

// Proxy entries, multicast and what resolution found are not an attachment's.
func TestNeighboursThatAreNoResources(t *testing.T) {
	n, h, v1 := routed(t)
	n.ip("neigh add proxy 10.0.0.9 dev v1", "-6 neigh add proxy fd00::9 dev v1", "neigh add 10.0.0.6 lladdr 02:00:00:00:00:06 dev v1 nud reachable",
		"neigh add fd00::6 lladdr 02:00:00:00:00:06 dev v1 nud stale", "neigh add 224.0.0.251 lladdr 01:00:5e:00:00:fb dev v1 nud permanent",
		"neigh add 10.0.0.5 lladdr 02:00:00:00:00:05 dev v1 nud permanent", "neigh add fd00::5 lladdr 02:00:00:00:00:05 dev v1 nud permanent router")
	got, err := h.Neighbours(v1.Index)
	slices.SortFunc(got, func(a, b attachment.Neighbour) int { return a.Family - b.Family })
	want := []attachment.Neighbour{
		{Family: unix.AF_INET, IfIndex: v1.Index, Dst: "10.0.0.5", MAC: "02:00:00:00:00:05", State: unix.NUD_PERMANENT},
		{Family: unix.AF_INET6, IfIndex: v1.Index, Dst: "fd00::5", MAC: "02:00:00:00:00:05", State: unix.NUD_PERMANENT, Flags: unix.NTF_ROUTER},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%+v, %v\nwant %+v", got, err, want)
	}
	before := n.everything("neigh")
	for _, x := range got {
		if err := h.Delete(ofNeigh(attachment.KindNeighbour, x)); err != nil {
			t.Error(err)
		}
	}
	if lost := minus(before, n.everything("neigh")); len(lost) != 2 {
		t.Errorf("%q went", lost)
	}
	for _, program := range []string{"ip -j -4", "ip -j -6"} {
		if proxies := n.list(program, "neigh show proxy")[0]; len(proxies) != 1 {
			t.Errorf("%s: proxies %q", program, proxies)
		}
	}
}

// TestForwardingEntriesOfEveryForm removes each entry of one port beside the same MAC in the device's own list.
func TestForwardingEntriesOfEveryForm(t *testing.T) {
	for name, entry := range map[string]string{
		"static": "fdb add 02:00:00:00:00:05 dev v1 master static", "local": "fdb add 02:00:00:00:00:05 dev v1 master local",
		"sticky": "fdb add 02:00:00:00:00:05 dev v1 master static sticky",
	} {
		t.Run(name, func(t *testing.T) {
			n, h, v1 := routed(t)
			n.ip("link add br0 type bridge", "link set br0 up", "link set v1 master br0", "link set v2 master br0")
			n.ip("fdb add 02:00:00:00:00:06 dev v1 master static", "fdb add 02:00:00:00:00:05 dev v1 self permanent")
			before, already := n.everything("fdb"), mustFDB(t, h, v1)
			n.ip(entry)
			var found []attachment.Neighbour
			for _, x := range mustFDB(t, h, v1) {
				if !slices.Contains(already, x) {
					found = append(found, x)
				}
			}
			if len(found) != 1 {
				t.Fatalf("%q is not among %v", minus(n.everything("fdb"), before), mustFDB(t, h, v1))
			}
			if x := found[0]; x.MAC != "02:00:00:00:00:05" || x.IfIndex != v1.Index {
				t.Errorf("%+v", x)
			}
			if err := h.Delete(ofNeigh(attachment.KindFDB, found[0])); err != nil {
				t.Fatal(err)
			}
			if after := n.everything("fdb"); !slices.Equal(before, after) {
				t.Errorf("after the deletion %q is left and %q gone", minus(after, before), minus(before, after))
			}
		})
	}
}

// The lists of a port itself, in which the kernel keeps multicast groups, are no resources.
func TestForwardingEntriesOfTheDeviceItself(t *testing.T) {
	n, h, v1 := routed(t)
	n.ip("link add br0 type bridge", "link set br0 up", "link set v1 master br0", "fdb add 02:00:00:00:00:05 dev v1 self permanent")
	if len(n.list("bridge -j", "fdb show dev v1")[0]) < 3 {
		t.Fatal("the kernel keeps no groups here, this test shows nothing")
	}
	for _, x := range mustFDB(t, h, v1) {
		if x.MAC != v1.MAC {
			t.Errorf("read as a resource: %+v", x)
		}
	}
	if got := mustFDB(t, h, attachment.Link{Index: 4711}); len(got) > 0 {
		t.Errorf("of a link that is gone: %v", got)
	}
}

func mustFDB(t *testing.T, h interface {
	FDB(int) ([]attachment.Neighbour, error)
}, l attachment.Link) []attachment.Neighbour {
	t.Helper()
	got, err := h.FDB(l.Index)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
