package kernel_test

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

func sorted(rs []attachment.Route) []attachment.Route {
	return slices.SortedFunc(slices.Values(rs), func(a, b attachment.Route) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.String(), b.String()))
	})
}

func TestRoutesByDeviceAndTable(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		v1 := w.veth("v1").Index
		v10 := w.veth("v10").Index
		w.must(
			"route add 10.0.0.5 dev v1", "route add 10.0.0.6 dev v10", "route add 10.0.0.7 dev v1 metric 100", "route add 10.0.0.7 dev v10 metric 200",
			"route add 10.9.0.0/16 via 10.0.0.5 dev v1 table 100", "route add default via 10.0.0.5 dev v1 table 1000",
			"route add blackhole 10.0.0.8 table 100", "route add unreachable 10.0.0.9 table 232", // 232 is 1000's low byte
			"-6 route add fd00::5 dev v1", "-6 route add fd00::6 dev v10", "-6 route add default via fd00::5 dev v1 table 1000",
			"-6 route add blackhole fd00::8 table 100",
		)
		for _, c := range []struct {
			what string
			got  func() ([]attachment.Route, error)
			want string
		}{
			{"over v1", func() ([]attachment.Route, error) { return w.RoutesOver(v1) }, `10.9.0.0/16 via 10.0.0.5 dev if table 100
10.0.0.5 dev if table main
10.0.0.7 dev if table main metric 100
fd00::5 dev if table main metric 1024
default via 10.0.0.5 dev if table 1000
default via fd00::5 dev if table 1000 metric 1024`},
			{"over two and none", func() ([]attachment.Route, error) { return w.RoutesOver(v1, v10, 4711) }, `10.9.0.0/16 via 10.0.0.5 dev if table 100
10.0.0.5 dev if table main
10.0.0.6 dev if table main
10.0.0.7 dev if table main metric 100
10.0.0.7 dev if table main metric 200
fd00::5 dev if table main metric 1024
fd00::6 dev if table main metric 1024
default via 10.0.0.5 dev if table 1000
default via fd00::5 dev if table 1000 metric 1024`},
			{"over none", func() ([]attachment.Route, error) { return w.RoutesOver() }, ""},
			{"over no device", func() ([]attachment.Route, error) { return w.RoutesOver(4711) }, ""},
			{"table 100", func() ([]attachment.Route, error) { return w.RoutesIn(100) }, `10.9.0.0/16 via 10.0.0.5 dev if table 100
blackhole 10.0.0.8 table 100
blackhole fd00::8 dev if table 100 metric 1024`},
			{"table 1000", func() ([]attachment.Route, error) { return w.RoutesIn(1000) }, `default via 10.0.0.5 dev if table 1000
default via fd00::5 dev if table 1000 metric 1024`},
			{"table 232", func() ([]attachment.Route, error) { return w.RoutesIn(232) }, "unreachable 10.0.0.9 table 232"},
			{"a table that was never made", func() ([]attachment.Route, error) { return w.RoutesIn(4711) }, ""},
		} {
			rs, err := c.got()
			for i := range rs {
				if rs[i].Oif != 0 {
					rs[i].Dev = "if" // the index is the world's own
				}
			}
			if got := texts(sorted(rs)); err != nil || got != c.want {
				t.Errorf("%s: %v\n%s\nwant\n%s", c.what, err, got, c.want)
			}
		}
	})
}

// The FIB's answer has to be the very route that a listing shows: capture finds it by the one and teardown
// looks for it in the other.
func TestRouteTo(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.veth("v1")
		w.veth("v10")
		w.must("rule add pref 100 to 10.0.0.64/26 lookup 1000", "rule add pref 99 from 10.0.0.5 lookup 1000", "rule add pref 98 iif v1 lookup 1000",
			"rule add pref 97 to 10.0.0.5 fwmark 1 lookup 1000", "-6 rule add pref 100 to fd00::64/122 lookup 1000", "route add 10.0.0.5 dev v10 table 1000")
		for _, c := range [][2]string{
			{"route add 10.0.0.5 dev v1", "10.0.0.5"},
			{"route add 10.0.0.6 dev v1 metric 7", "10.0.0.6"},
			{"route add 10.1.0.0/24 via 10.0.0.5 dev v1", "10.1.0.9"},
			{"route add 10.0.0.65 dev v1 table 1000", "10.0.0.65"},
			{"route add 10.0.0.66 dev v1 table 1000 metric 5", "10.0.0.66"},
			{"-6 route add fd00::5 dev v1", "fd00::5"},
			{"-6 route add fd00::6 dev v1 metric 7", "fd00::6"},
			{"-6 route add fd01::/64 via fd00::5 dev v1", "fd01::9"},
			{"-6 route add fd00::65 dev v1 table 1000", "fd00::65"},
		} {
			before := slices.Concat(w.in(254), w.in(1000))
			line, to := c[0], c[1]
			w.must(line)
			var added []attachment.Route
			for _, r := range slices.Concat(w.in(254), w.in(1000)) {
				if !slices.ContainsFunc(before, r.Equal) {
					added = append(added, r)
				}
			}
			got, err := w.RouteTo(netip.MustParseAddr(to))
			if err != nil || got == nil || len(added) != 1 || !got.Equal(added[0]) {
				t.Errorf("%q: the lookup says %v (%v), the listing %v", line, got, err, added)
			}
		}
		w.must("route add blackhole 10.3.0.5", "route add unreachable 10.3.0.6", "route add prohibit 10.3.0.7", "route add throw 10.3.0.8",
			"-6 route add blackhole fd03::5", "-6 route add unreachable fd03::6",
			"rule add pref 96 to 10.0.0.6 blackhole", "route add 10.0.0.5 dev v10 metric 50")
		for _, to := range []string{"10.3.0.5", "10.3.0.6", "10.3.0.7", "10.3.0.8", "10.4.0.1", "fd03::5", "fd03::6", "fd04::1", "10.0.0.6"} {
			if got, err := w.RouteTo(netip.MustParseAddr(to)); err != nil || got != nil {
				t.Errorf("to %s: %v, %v, want none", to, got, err)
			}
		}
		if got, err := w.RouteTo(netip.MustParseAddr("10.0.0.5")); err != nil || got == nil || got.Oif != w.link("v1").Index {
			t.Errorf("with a second route of a higher metric: %v, %v", got, err)
		}
	})
}

// TestRouteIsDeletedExactly removes a route that stands beside one that differs in one thing.
func TestRouteIsDeletedExactly(t *testing.T) {
	const base, base6 = "route add 10.0.0.5 dev v1 table 100", "-6 route add fd00::5 dev v1 table 100"
	for name, c := range map[string]struct {
		victim, twin string
		table        uint32 // of the victim, 100 if not said
	}{
		"table":                   {victim: base, twin: "route add 10.0.0.5 dev v1 table 101"},
		"main":                    {victim: base, twin: "route add 10.0.0.5 dev v1"},
		"table beyond a byte":     {victim: "route add 10.0.0.5 dev v1 table 1100", twin: "route add 10.0.0.5 dev v1 table 1101", table: 1100},
		"metric":                  {victim: base, twin: base + " metric 100"},
		"lower metric":            {victim: base + " metric 100", twin: base + " metric 99"},
		"no metric":               {victim: base + " metric 100", twin: base},
		"device and metric":       {victim: base + " metric 100", twin: "route add 10.0.0.5 dev v10 table 100 metric 101"},
		"device":                  {victim: base, twin: "route add 10.0.0.5 dev v10 table 100 tos 0x10"},
		"tos":                     {victim: base, twin: base + " tos 0x10"},
		"no tos":                  {victim: base + " tos 0x10", twin: base},
		"type":                    {victim: base, twin: "route add blackhole 10.0.0.5 table 100 metric 9"},
		"another type":            {victim: "route add blackhole 10.0.0.5 table 100", twin: "route add unreachable 10.0.0.5 table 100 metric 9"},
		"prefix":                  {victim: base, twin: "route add 10.0.0.4/31 dev v1 table 100"},
		"default":                 {victim: "route add default dev v1 table 100", twin: "route add 0.0.0.0/1 dev v1 table 100"},
		"gateway":                 {victim: "route add 10.9.0.0/16 via 10.0.0.5 dev v1 table 100", twin: "route add 10.9.0.0/16 via 10.0.0.6 dev v1 table 100 metric 1"},
		"IPv6, table":             {victim: base6, twin: "-6 route add fd00::5 dev v1 table 101"},
		"IPv6, metric":            {victim: base6, twin: base6 + " metric 1023"},
		"IPv6, device and metric": {victim: base6, twin: "-6 route add fd00::5 dev v10 table 100 metric 1023"},
		"IPv6, type":              {victim: "-6 route add blackhole fd00::5 table 100", twin: base6 + " metric 9"},
		"IPv6, default":           {victim: "-6 route add default dev v1 table 100", twin: "-6 route add ::/1 dev v1 table 100"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, w *world) {
				for _, v := range []string{"v1", "v10"} {
					w.veth(v)
				}
				w.must("route add 10.0.0.6 dev v1", "route add 10.0.0.5/32 dev v1 metric 9", "route add 10.0.0.5 dev v1 table 99",
					"-6 route add fd00::6 dev v1", "route add 10.0.0.6 dev v1 table 100")
				w.must(c.twin)
				before := w.list("route4", "route6")
				victim := w.route(cmp.Or(c.table, 100), c.victim)
				line := minus(w.list("route4", "route6"), before)
				if lost := w.deleted(ofRoute(victim), "route4", "route6"); len(line) != 1 || !slices.Equal(lost, line) {
					t.Errorf("deleting %q took %q", line, lost)
				}
			})
		})
	}
}

// What a request leaves open the kernel takes as "any", and no metric is open: whoever deletes a route must
// have seen it just before.
func TestRouteWithoutMetricThatIsGone(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.veth("v1")
		plain := w.route(100, "route add 10.0.0.5 dev v1 table 100")
		w.deleted(ofRoute(plain))
		isGone(t, "a route that is gone", w.Delete(ofRoute(plain)))
		w.must("route add 10.0.0.5 dev v1 table 100 metric 9")
		if lost := w.deleted(ofRoute(plain)); len(lost) != 1 {
			t.Errorf("with another metric it is hit: %q went", lost)
		}
	})
}
