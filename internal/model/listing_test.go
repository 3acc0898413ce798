package model

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// item is one thing in the kernel. text tells it from every other thing: equal texts are the same thing twice.
type item struct {
	kind  string // link, rule, route, neigh, fdb
	text  string
	index int // of the link it is, or goes over
	name  string
	ips   []netip.Addr // of a rule's selectors, whole addresses only; of a route's destination
	prio  uint32
	table uint32
	plain bool   // a rule that selects by one address and nothing else
	from  bool   // a rule with a source
	match string // what a rule selects, and its priority
	raw   []byte
}

// listing is a node's state: the things by their text.
type listing struct {
	items map[string]*item
	count map[string]int
}

func (l listing) has(text string) bool { return l.count[text] > 0 }

// list reads the node: every link, rule, route, permanent neighbour and static forwarding entry, apart from
// what the kernel makes and removes by itself.
func list() (listing, error) {
	l := listing{items: map[string]*item{}, count: map[string]int{}}
	for i, d := range []struct {
		ask, answer uint16
		body        nl.NetlinkRequestData
		parse       func([]byte) *item
	}{
		{unix.RTM_GETLINK, unix.RTM_NEWLINK, message(withoutStats), linkItem},
		{unix.RTM_GETRULE, unix.RTM_NEWRULE, header(unix.AF_UNSPEC), ruleItem},
		{unix.RTM_GETROUTE, unix.RTM_NEWROUTE, header(unix.AF_INET), routeItem},
		{unix.RTM_GETROUTE, unix.RTM_NEWROUTE, header(unix.AF_INET6), routeItem},
		{unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, header(unix.AF_UNSPEC), neighItem},
		{unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, header(unix.AF_BRIDGE), neighItem},
	} {
		msgs, err := dump(d.ask, d.answer, d.body)
		if err != nil {
			return l, fmt.Errorf("dump %d: %w", d.ask, err)
		}
		for _, m := range msgs {
			if it := parsed[i].get(m, d.parse); it != nil {
				l.items[it.text] = it
				l.count[it.text]++
			}
		}
	}
	return l, nil
}

// parsed keeps what the messages of each dump mean: most of a listing is as it was the last time.
var parsed [6]cache

type cache struct {
	mu    sync.Mutex
	items map[string]*item
}

func (c *cache) get(m []byte, parse func([]byte) *item) *item {
	c.mu.Lock()
	defer c.mu.Unlock()
	it, known := c.items[string(m)]
	if !known {
		it = parse(m)
		if c.items == nil || len(c.items) > 1<<14 {
			c.items = map[string]*item{}
		}
		c.items[string(m)] = it
	}
	return it
}

// withoutStats asks for links without their counters, which change: struct ifinfomsg, and IFLA_EXT_MASK with
// RTEXT_FILTER_SKIP_STATS (linux/rtnetlink.h).
var withoutStats = append(make([]byte, unix.SizeofIfInfomsg), nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(1<<3)).Serialize()...)

// header is a message header of 12 bytes that names a family: rtmsg, fib_rule_hdr and ndmsg all begin with it.
type header byte

func (h header) Len() int          { return 12 }
func (h header) Serialize() []byte { return append([]byte{byte(h)}, make([]byte, 11)...) }

func dump(ask, answer uint16, body nl.NetlinkRequestData) ([][]byte, error) {
	for range 20 {
		req := nl.NewNetlinkRequest(int(ask), unix.NLM_F_DUMP)
		req.AddData(body)
		msgs, err := req.Execute(unix.NETLINK_ROUTE, answer)
		if !errors.Is(err, netlink.ErrDumpInterrupted) && !errors.Is(err, unix.EINTR) {
			return msgs, err
		}
	}
	return nil, netlink.ErrDumpInterrupted
}

type attributes map[uint16][]byte

func parseAttributes(b []byte) attributes {
	out := attributes{}
	all, err := nl.ParseRouteAttr(b)
	if err != nil {
		return out
	}
	for _, a := range all {
		out[a.Attr.Type&^unix.NLA_F_NESTED] = a.Value
	}
	return out
}

func (a attributes) number(t uint16) uint32 {
	if v := a[t]; len(v) >= 4 {
		return nl.NativeEndian().Uint32(v)
	}
	return 0
}

func (a attributes) text(t uint16) string { return unix.ByteSliceToString(a[t]) }

// others is what is in a but not named, in hexadecimal.
func (a attributes) others(but ...uint16) string {
	var out []string
	for t, v := range a {
		if !slices.Contains(but, t) {
			out = append(out, fmt.Sprintf("%d:%x", t, v))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func linkItem(m []byte) *item {
	a := parseAttributes(m[unix.SizeofIfInfomsg:])
	it := &item{kind: "link", index: int(nl.NativeEndian().Uint32(m[4:])), name: a.text(unix.IFLA_IFNAME)}
	state := "down"
	if nl.NativeEndian().Uint32(m[8:])&unix.IFF_UP != 0 {
		state = "up"
	}
	kind := parseAttributes(a[unix.IFLA_LINKINFO]).text(unix.IFLA_INFO_KIND)
	it.text = fmt.Sprintf("link %s index %d kind %s master %d %s", it.name, it.index, kind, a.number(unix.IFLA_MASTER), state)
	return it
}

func prefixText(v []byte, bits byte) (string, netip.Addr) {
	ip, ok := netip.AddrFromSlice(v)
	switch {
	case !ok:
		return "all", netip.Addr{}
	case int(bits) == ip.BitLen():
		return ip.String(), ip
	}
	return fmt.Sprintf("%s/%d", ip, bits), netip.Addr{}
}

func ruleItem(m []byte) *item {
	if m[0] != unix.AF_INET && m[0] != unix.AF_INET6 {
		return nil
	}
	a := parseAttributes(m[12:])
	it := &item{kind: "rule", prio: a.number(unix.FRA_PRIORITY), table: a.number(unix.FRA_TABLE), name: a.text(unix.FRA_IIFNAME), raw: m}
	src, srcIP := prefixText(a[unix.FRA_SRC], m[2])
	dst, dstIP := prefixText(a[unix.FRA_DST], m[1])
	for _, ip := range []netip.Addr{srcIP, dstIP} {
		if ip.IsValid() {
			it.ips = append(it.ips, ip)
		}
	}
	suppress := a.number(unix.FRA_SUPPRESS_PREFIXLEN)
	others := a.others(unix.FRA_PRIORITY, unix.FRA_TABLE, unix.FRA_SRC, unix.FRA_DST, unix.FRA_IIFNAME, unix.FRA_PROTOCOL, unix.FRA_SUPPRESS_PREFIXLEN, unix.FRA_PAD)
	if suppress != 0xffffffff {
		others += fmt.Sprintf(" suppress %d", suppress)
	}
	it.plain = len(it.ips) == 1 && it.name == "" && others == "" && m[3] == 0
	it.from = srcIP.IsValid()
	it.match = fmt.Sprintf("rule%d %d: from %s to %s iif %q tos %d action %d %s", family(m[0]), it.prio, src, dst, it.name, m[3], m[7], others)
	it.text = fmt.Sprintf("%s lookup %d proto %x", it.match, it.table, a[unix.FRA_PROTOCOL])
	return it
}

func family(af byte) int { return map[byte]int{unix.AF_INET: 4, unix.AF_INET6: 6}[af] }

func routeItem(m []byte) *item {
	if m[5] == unix.RTPROT_KERNEL || nl.NativeEndian().Uint32(m[8:])&unix.RTM_F_CLONED != 0 {
		return nil
	}
	a := parseAttributes(m[12:])
	dst, ip := prefixText(a[unix.RTA_DST], m[1])
	if strings.HasPrefix(dst, "fe80::/") || strings.HasPrefix(dst, "ff00::/") {
		return nil
	}
	it := &item{kind: "route", index: int(a.number(unix.RTA_OIF)), table: a.number(unix.RTA_TABLE), prio: a.number(unix.RTA_PRIORITY), raw: m}
	if ip.IsValid() {
		it.ips = []netip.Addr{ip}
	}
	it.text = fmt.Sprintf("route%d %s dev %d table %d metric %d type %d scope %d proto %d %s", family(m[0]), dst, it.index, it.table, it.prio, m[7], m[6], m[5],
		a.others(unix.RTA_DST, unix.RTA_OIF, unix.RTA_TABLE, unix.RTA_PRIORITY, unix.RTA_CACHEINFO, unix.RTA_PAD, unix.RTA_PREF))
	return it
}

func neighItem(m []byte) *item {
	state, flags := nl.NativeEndian().Uint16(m[8:]), m[10]
	a := parseAttributes(m[12:])
	it := &item{kind: "neigh", index: int(nl.NativeEndian().Uint32(m[4:]))}
	wanted := uint16(unix.NUD_PERMANENT)
	if m[0] == unix.AF_BRIDGE { // a port's own address is permanent, what somebody added is not
		it.kind, wanted = "fdb", unix.NUD_NOARP
	}
	if state&wanted == 0 || flags&unix.NTF_SELF != 0 {
		return nil
	}
	dst, ip := prefixText(a[unix.NDA_DST], byte(8*len(a[unix.NDA_DST])))
	if ip.IsMulticast() {
		return nil
	}
	it.text = fmt.Sprintf("%s %s lladdr %s dev %d flags %d", it.kind, dst, net.HardwareAddr(a[unix.NDA_LLADDR]), it.index, flags)
	return it
}
