package kernel_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"golang.org/x/sys/unix"
)

// routed is a node with two devices that routes can leave over.
func routed(t *testing.T) (*netns, *kernel.Handle, attachment.Link) {
	t.Helper()
	n := enterNode(t)
	n.ip("link add v1 type veth peer name p1", "link add v2 type veth peer name p2")
	for _, v := range []string{"v1", "v2", "p1", "p2"} {
		n.ip("link set " + v + " up")
	}
	h := n.handle()
	v1, err := h.LinkByName("v1")
	if err != nil || v1 == nil {
		t.Fatal(v1, err)
	}
	return n, h, *v1
}

// TestRoutesOfEveryForm adds one route, finds it again in each way there is, and deletes it beside its like.
func TestRoutesOfEveryForm(t *testing.T) {
	for name, c := range map[string]struct {
		setUp  []string
		route  string
		want   string // as it is read; empty where a device listing must not have it
		lookup string // an address whose lookup gives this very route
	}{
		"onlink": {nil, "route add 10.9.0.0/16 via 172.16.0.1 dev v1 onlink", "10.9.0.0/16 via 172.16.0.1 dev if table main", "10.9.1.1"},
		"mtu and source": {[]string{"addr add 10.0.0.1/32 dev lo"}, "route add 10.0.0.5 dev v1 src 10.0.0.1 mtu 1400 table 100",
			"10.0.0.5 dev if table 100", ""},
		"several next hops over one device": {nil, "route add 10.9.0.0/16 table 1000 nexthop via 10.0.0.8 dev v1 onlink weight 2 nexthop via 10.0.0.9 dev v1 onlink",
			"10.9.0.0/16 dev if table 1000", ""},
		"several next hops over one device, IPv6": {[]string{"-6 route add fd00::/64 dev v1"}, "-6 route add fd09::/64 table 1000 nexthop via fd00::8 dev v1 nexthop via fd00::9 dev v1",
			"fd09::/64 dev if table 1000 metric 1024", ""},
		"another device has a part of it": {nil, "route add 10.9.0.0/16 nexthop via 10.0.0.8 dev v1 onlink nexthop via 10.0.0.9 dev v2 onlink",
			"", "10.9.1.1"},
		"another device has a part of it, IPv6": {[]string{"-6 route add fd00::/64 dev v1", "-6 route add fd01::/64 dev v2"},
			"-6 route add fd09::/64 nexthop via fd00::8 dev v1 nexthop via fd01::9 dev v2", "", "fd09::1"},
		"next hop of the other family": {nil, "route add 10.9.0.0/16 via inet6 fe80::1 dev v1", "10.9.0.0/16 dev if table main", "10.9.1.1"},
		"a nexthop object":             {[]string{"nexthop add id 7 dev v1"}, "route add 10.0.0.5 nhid 7", "10.0.0.5 dev if table main", "10.0.0.5"},
		"a nexthop object, IPv6":       {[]string{"-6 nexthop add id 7 dev v1"}, "-6 route add fd00::5 nhid 7", "fd00::5 dev if table main metric 1024", "fd00::5"},
		"protocol bird":                {nil, "route add 10.0.0.5 dev v1 proto bird", "10.0.0.5 dev if table main", "10.0.0.5"},
		"IPv6, preference":             {nil, "-6 route add fd00::5 dev v1 pref high", "fd00::5 dev if table main metric 1024", "fd00::5"},
		"IPv6, from":                   {nil, "-6 route add fd00::5 from fd01::/64 dev v1 table 100", "fd00::5 dev if table 100 metric 1024", ""},
		"IPv6, with an end":            {nil, "-6 route add fd00::5 dev v1 expires 1000", "fd00::5 dev if table main metric 1024", "fd00::5"},
		"local":                        {nil, "route add local 10.0.0.5 dev v1 table 100", "local 10.0.0.5 dev if table 100", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, h, v1 := routed(t)
			n.ip(c.setUp...)
			before := n.everything()
			n.ip(c.route)
			over, err := h.RoutesOver(v1.Index)
			if err != nil {
				t.Fatal(err)
			}
			var found []attachment.Route
			for _, table := range []uint32{100, 254, 1000} {
				in, err := h.RoutesIn(table)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range in {
					if strings.Contains(c.route, " "+r.Dst+" ") {
						found = append(found, r)
					}
				}
			}
			if len(found) != 1 {
				t.Fatalf("in the tables: %v", found)
			}
			r := found[0]
			if i := slices.IndexFunc(over, r.Equal); (i >= 0) != (c.want != "") {
				t.Errorf("over %s: %v", v1, over)
			} else if i >= 0 {
				if over[i].Dev = "if"; over[i].String() != c.want || over[i].Oif != v1.Index {
					t.Errorf("read as %+v, want %s", over[i], c.want)
				}
			}
			if rtattr.Get(r.Raw[12:], unix.RTA_CACHEINFO) != nil {
				t.Error("its identity has ages and counters in it")
			}
			if c.lookup != "" {
				if got, err := h.RouteTo(netip.MustParseAddr(c.lookup)); err != nil || got == nil || !got.Equal(r) {
					t.Errorf("the lookup says\n%+v (%v), the listing\n%+v", got, err, r)
				}
			}
			if err := h.Delete(ofRoute(r)); err != nil {
				t.Fatal(err)
			}
			if after := n.everything(); !slices.Equal(before, after) {
				t.Errorf("after its deletion %q is left and %q gone", minus(after, before), minus(before, after))
			}
		})
	}
}

// What the kernel makes by itself with addresses, groups and carriers is never read as a resource.
func TestKernelMadeRoutesAreLeftOut(t *testing.T) {
	n, h, v1 := routed(t)
	n.ip("addr add 10.0.0.1/24 dev v1", "addr add fd00::1/64 dev v1 nodad", "addr add fe80::1/64 dev v1 nodad", "route add 10.0.1.0/24 dev v1")
	for _, program := range []string{"ip -j -4", "ip -j -6"} {
		if made := n.list(program, "route show table all dev v1")[0]; len(made) < 3 {
			t.Fatalf("the kernel made too little for this test: %q", made)
		}
	}
	if got, err := h.RoutesOver(v1.Index); err != nil || len(got) != 1 || got[0].Dst != "10.0.1.0/24" {
		t.Errorf("over v1: %v, %v", got, err)
	}
	for _, table := range []uint32{254, 255} {
		got, err := h.RoutesIn(table)
		if err != nil || len(got) != map[uint32]int{254: 1}[table] {
			t.Errorf("in table %d: %v, %v", table, got, err)
		}
	}
	for _, to := range []string{"10.0.0.1", "10.0.0.7", "fd00::1", "fd00::7", "127.0.0.1", "::1"} {
		if got, err := h.RouteTo(netip.MustParseAddr(to)); err != nil || got != nil {
			t.Errorf("to %s: %v, %v", to, got, err)
		}
	}
}

// A link that is down keeps its IPv6 routes' identity, and one that comes up again has the same.
func TestRouteIsTheSameWithoutCarrier(t *testing.T) {
	n, h, v1 := routed(t)
	n.ip("route add 10.0.0.5 dev v1", "route add 10.9.0.0/16 nexthop via 10.0.0.8 dev v1 onlink nexthop via 10.0.0.9 dev v1 onlink", "-6 route add fd00::5 dev v1")
	up, err := h.RoutesOver(v1.Index)
	if err != nil || len(up) != 3 {
		t.Fatal(up, err)
	}
	n.ip("link set p1 down")
	until(t, func() error {
		if text := strings.Join(n.list("ip -j -4", "route")[0], " "); !strings.Contains(text, "linkdown") {
			return fmt.Errorf("no linkdown in %s", text)
		}
		return nil
	})
	down, err := h.RoutesOver(v1.Index)
	if err != nil || len(down) != len(up) {
		t.Fatalf("without carrier: %v, %v", down, err)
	}
	for _, r := range up {
		if !slices.ContainsFunc(down, r.Equal) {
			t.Errorf("%s is another route without carrier: %+v", r, down)
		}
	}
}
