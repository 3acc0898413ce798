package kernel

import (
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

const routeScope = 6 // struct rtmsg

var scopeNames = map[string]int{"global": unix.RT_SCOPE_UNIVERSE, "link": unix.RT_SCOPE_LINK, "host": unix.RT_SCOPE_HOST}

func (f *Fake) addRoute(w *words, six bool) error {
	e := newEncoder(routeHeader, six)
	e.head[routeType] = unix.RTN_UNICAST
	e.head[routeProtocol] = unix.RTPROT_BOOT
	table, metric, scope, oif, via := unix.RT_TABLE_MAIN, 0, -1, 0, false
	dst := w.next()
	for typ, name := range routeTypes {
		if name == dst {
			e.head[routeType] = typ
			dst = w.next()
			break
		}
	}
	e.head[routeDstLen] = e.prefix(w, unix.RTA_DST, dst)
	for len(w.left) > 0 && w.err == nil {
		switch key := w.next(); key {
		case "via":
			via = true
			e.address(w, unix.RTA_GATEWAY)
		case "src":
			e.address(w, unix.RTA_PREFSRC)
		case "dev":
			l := f.byName(w.next())
			if l == nil {
				return unix.ENODEV
			}
			oif = l.Index
		case "table":
			table = w.number(w.next(), tableNames)
		case "metric":
			metric = w.int()
		case "scope":
			scope = w.number(w.next(), scopeNames)
		case "protocol":
			e.head[routeProtocol] = byte(w.number(w.next(), protocolNames))
		case "tos":
			e.head[2+1] = byte(w.int()) // rtm_tos
		default:
			w.fail(key)
		}
	}
	unicast := e.head[routeType] == unix.RTN_UNICAST
	if six {
		if metric == 0 {
			metric = 1024
		}
		if !unicast {
			oif = 1
		}
		scope = unix.RT_SCOPE_UNIVERSE
		e.attr(unix.RTA_PREF, []byte{0})
	}
	if scope < 0 {
		scope = unix.RT_SCOPE_UNIVERSE
		if unicast && !via {
			scope = unix.RT_SCOPE_LINK
		}
	}
	e.head[routeScope] = byte(scope)
	if oif != 0 {
		e.attr(unix.RTA_OIF, u32(uint32(oif)))
	}
	if metric != 0 {
		e.attr(unix.RTA_PRIORITY, u32(uint32(metric)))
	}
	e.table(routeTable, unix.RTA_TABLE, table)
	r, ok := parseRoute(append(e.head, e.attrs...))
	if !ok {
		return nil // one of those that are never listed
	}
	same := func(o attachment.Route) bool { // what the kernel takes for the same route
		return o.Family == r.Family && o.Table == r.Table && o.Dst == r.Dst && o.Metric == r.Metric && o.Raw[3] == r.Raw[3]
	}
	if slices.ContainsFunc(f.routes, same) {
		return unix.EEXIST
	}
	f.putRoute(r)
	return nil
}

func (e *encoder) address(w *words, typ uint16) {
	a, err := netip.ParseAddr(w.next())
	if err != nil || a.Is6() != e.six {
		w.fail("an address of another kind")
		return
	}
	e.attr(typ, a.AsSlice())
}

// putRoute keeps routes to one destination in the order of their metrics.
func (f *Fake) putRoute(r attachment.Route) {
	at := slices.IndexFunc(f.routes, func(o attachment.Route) bool {
		return o.Family == r.Family && o.Table == r.Table && o.Dst == r.Dst && o.Metric > r.Metric
	})
	if at < 0 {
		at = len(f.routes)
	}
	f.routes = slices.Insert(f.routes, at, r)
}
