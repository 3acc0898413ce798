package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"golang.org/x/sys/unix"
)

// struct rtmsg (linux/rtnetlink.h): offsets of what is used here.
const (
	routeHeader   = 12
	routeFamily   = 0
	routeDstLen   = 1
	routeTable    = 4
	routeProtocol = 5
	routeType     = 7
	routeFlags    = 8
)

const rtaNHID = 30 // RTA_NH_ID, which x/sys lacks

// nexthopState are the flags of a next hop that the kernel sets by itself:
// dead, offload, linkdown, unresolved, trap.
const nexthopState = unix.RTNH_F_DEAD | 0x8 | unix.RTNH_F_LINKDOWN | unix.RTNH_F_UNRESOLVED | 0x40

var families = []uint8{unix.AF_INET, unix.AF_INET6}

// RoutesOver reads the routes of every table that leave over one of the devices. Those of a single one the kernel
// selects, which goes through all of its routes for it; for several they are listed once. Routes that the kernel makes by itself
// are left out.
func (h *Handle) RoutesOver(oifs ...int) ([]attachment.Route, error) {
	if len(oifs) == 1 {
		over := func(r attachment.Route) bool { return r.Oif == oifs[0] }
		return h.routes(fmt.Sprintf("list routes over link %d", oifs[0]), over, func([]byte) {}, attr{unix.RTA_OIF, u32(uint32(oifs[0]))})
	}
	wanted := map[int]bool{}
	for _, o := range oifs {
		wanted[o] = true
	}
	over := func(r attachment.Route) bool { return wanted[r.Oif] }
	return h.routes(fmt.Sprintf("list routes over %d links", len(oifs)), over, func([]byte) {})
}

// RoutesIn reads the routes of one table, as the kernel filters them.
func (h *Handle) RoutesIn(table uint32) ([]attachment.Route, error) {
	head := func(m []byte) {
		if table < 256 {
			m[routeTable] = byte(table)
		}
	}
	in := func(r attachment.Route) bool { return r.Table == table }
	return h.routes(fmt.Sprintf("list routes of table %d", table), in, head, attr{unix.RTA_TABLE, u32(table)})
}

// AllRoutes reads every table's routes: for the pod's side, which is small.
func (h *Handle) AllRoutes() ([]attachment.Route, error) {
	return h.routes("list routes", func(attachment.Route) bool { return true }, func([]byte) {})
}

func (h *Handle) routes(what string, want func(attachment.Route) bool, head func([]byte), filter ...attr) ([]attachment.Route, error) {
	var out []attachment.Route
	for _, f := range families {
		var some []attachment.Route
		msg := make([]byte, routeHeader)
		msg[routeFamily] = f
		head(msg)
		err := h.dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, func() { some = nil }, func(m []byte) {
			if r, ok := parseRoute(m); ok && want(r) {
				some = append(some, r)
			}
		}, msg, filter...)
		// no such device, no such table, no IPv6: nothing to list
		if err != nil && !gone(err) && !errors.Is(err, unix.EAFNOSUPPORT) {
			return nil, describe(what, err)
		}
		out = append(out, some...)
	}
	return out, nil
}

// RouteTo asks which route of the node leads to an address (a FIB lookup, Linux
// 4.20); nil when none does.
func (h *Handle) RouteTo(ip netip.Addr) (*attachment.Route, error) {
	msg := make([]byte, routeHeader)
	// IPv4 says "main", whatever the table, unless it is asked; IPv6 always tells, and takes no other flag.
	msg[routeFamily], msg[routeDstLen] = unix.AF_INET, 32
	flags := uint32(unix.RTM_F_FIB_MATCH | unix.RTM_F_LOOKUP_TABLE)
	if ip.Is6() {
		msg[routeFamily], msg[routeDstLen] = unix.AF_INET6, 128
		flags = unix.RTM_F_FIB_MATCH
	}
	native.PutUint32(msg[routeFlags:], flags)
	var r attachment.Route
	ok := false
	_, err := h.get(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, func(m []byte) { r, ok = parseRoute(m) }, msg, attr{unix.RTA_DST, ip.AsSlice()})
	for _, none := range []error{unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EACCES, unix.EINVAL, unix.EAFNOSUPPORT} {
		if errors.Is(err, none) {
			return nil, nil // unreachable, prohibit and blackhole routes answer with their error
		}
	}
	if err != nil || !ok {
		return nil, describe("look up route to "+ip.String(), err)
	}
	return &r, nil
}

// parseRoute reads a route; false for those that the kernel makes and removes
// by itself with addresses, carrier and duplicate address detection.
func parseRoute(m []byte) (attachment.Route, bool) {
	if len(m) < routeHeader || m[routeProtocol] == unix.RTPROT_KERNEL || native.Uint32(m[routeFlags:])&unix.RTM_F_CLONED != 0 {
		return attachment.Route{}, false
	}
	head := slices.Clone(m[:routeHeader])
	native.PutUint32(head[routeFlags:], 0)
	attrs := rtattr.Normal(m[routeHeader:], unix.RTA_CACHEINFO, unix.RTA_EXPIRES, unix.RTA_PAD)
	r := attachment.Route{Family: int(m[routeFamily]), Dst: "default", Table: uint32(m[routeTable]), Type: routeTypes[m[routeType]]}
	for t, v := range rtattr.Each(attrs) {
		switch t {
		case unix.RTA_DST:
			r.Dst = prefix(v, m[routeDstLen])
			if a, ok := netip.AddrFromSlice(v); ok && a.Is6() && (a.IsMulticast() || a.IsLinkLocalUnicast()) {
				return attachment.Route{}, false
			}
		case unix.RTA_OIF:
			r.Oif = int(native.Uint32(v))
		case unix.RTA_TABLE:
			r.Table = native.Uint32(v)
		case unix.RTA_PRIORITY:
			r.Metric = native.Uint32(v)
		case unix.RTA_GATEWAY:
			r.Gateway = prefix(v, uint8(8*len(v)))
		case unix.RTA_MULTIPATH:
			clearState(v)
			r.Oif = onlyDevice(v)
		}
	}
	r.Raw = append(head, attrs...)
	return r, true
}

// clearState takes out of each next hop (struct rtnexthop) what is not
// configuration. v belongs to the copy.
func clearState(v []byte) {
	for len(v) >= unix.SizeofRtNexthop {
		n := int(native.Uint16(v))
		v[2] &^= nexthopState
		if n < unix.SizeofRtNexthop || n > len(v) {
			return
		}
		v = v[min((n+3)&^3, len(v)):]
	}
}

// onlyDevice is the device that every next hop leaves over, 0 when there are
// several: then the route is not one device's alone.
func onlyDevice(v []byte) int {
	only := 0
	for len(v) >= unix.SizeofRtNexthop {
		n, oif := int(native.Uint16(v)), int(native.Uint32(v[4:]))
		if only != 0 && only != oif || n < unix.SizeofRtNexthop || n > len(v) {
			return 0
		}
		only, v = oif, v[min((n+3)&^3, len(v)):]
	}
	return only
}

var routeTypes = map[byte]string{
	unix.RTN_LOCAL: "local", unix.RTN_BROADCAST: "broadcast", unix.RTN_ANYCAST: "anycast", unix.RTN_MULTICAST: "multicast",
	unix.RTN_BLACKHOLE: "blackhole", unix.RTN_UNREACHABLE: "unreachable", unix.RTN_PROHIBIT: "prohibit", unix.RTN_THROW: "throw", unix.RTN_NAT: "nat",
}

func routeDeletion(r attachment.Route) (request, error) {
	raw := r.Raw
	if len(raw) < routeHeader {
		return request{}, unix.EINVAL
	}
	if rtattr.Get(raw[routeHeader:], rtaNHID) != nil {
		// The kernel dumps a nexthop object by its id and in full, and takes only one of the two.
		hops := []uint16{unix.RTA_OIF, unix.RTA_GATEWAY, unix.RTA_VIA, unix.RTA_MULTIPATH, unix.RTA_ENCAP, unix.RTA_ENCAP_TYPE}
		raw = append(slices.Clone(raw[:routeHeader]), rtattr.Normal(raw[routeHeader:], hops...)...)
	}
	return request{typ: unix.RTM_DELROUTE, head: raw}, nil
}
