package model

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// rulesOf are those that the primary makes for an attachment.
func (a *att) rulesOf() (out []*netlink.Rule) {
	add := func(ip netip.Addr, prio, table int) *netlink.Rule {
		r := netlink.NewRule()
		r.Priority, r.Table, r.Family = prio, table, unix.AF_INET
		if ip.Is6() {
			r.Family = unix.AF_INET6
		}
		out = append(out, r)
		return r
	}
	for _, ip := range a.ips {
		if a.net.rules {
			add(ip, 512, unix.RT_TABLE_MAIN).Dst = host(ip)
			if a.table != unix.RT_TABLE_MAIN {
				add(ip, 1536, int(a.table)).Src = host(ip)
			}
		}
		if a.net.iifRules {
			add(ip, 10, int(a.table)).IifName = a.link
		}
	}
	return out
}

// addRules takes a rule that is there for its own, as ipamd does, or adds a second one like it.
func (w *world) addRules(a *att, twice bool) error {
	for _, r := range a.rulesOf() {
		err := w.nl.RuleAdd(r)
		if errors.Is(err, unix.EEXIST) && twice {
			err = addDuplicate(r)
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return nil
}

// addDuplicate adds a rule that is there already: without NLM_F_EXCL the kernel does not look.
func addDuplicate(r *netlink.Rule) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_ACK)
	body := make([]byte, 12)
	body[0], body[7] = byte(r.Family), unix.FR_ACT_TO_TBL
	var attrs []*nl.RtAttr
	for typ, ip := range map[int]*net.IPNet{unix.FRA_DST: r.Dst, unix.FRA_SRC: r.Src} {
		if ip == nil {
			continue
		}
		a, _ := netip.AddrFromSlice(ip.IP)
		a = a.Unmap()
		body[map[int]int{unix.FRA_DST: 1, unix.FRA_SRC: 2}[typ]] = byte(a.BitLen())
		attrs = append(attrs, nl.NewRtAttr(typ, a.AsSlice()))
	}
	if r.IifName != "" {
		attrs = append(attrs, nl.NewRtAttr(unix.FRA_IIFNAME, nl.ZeroTerminated(r.IifName)))
	}
	attrs = append(attrs, nl.NewRtAttr(unix.FRA_PRIORITY, nl.Uint32Attr(uint32(r.Priority))), nl.NewRtAttr(unix.FRA_TABLE, nl.Uint32Attr(uint32(r.Table))))
	req.AddData(message(body))
	for _, a := range attrs {
		req.AddData(a)
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// delByAddress is what the AWS VPC CNI does: rules and host route of the address, whoever uses them by now.
func (w *world) delByAddress(ips []netip.Addr, table uint32) error {
	l, err := list()
	if err != nil {
		return err
	}
	for _, it := range l.items {
		if len(it.ips) != 1 || !slices.Contains(ips, it.ips[0]) {
			continue
		}
		switch {
		case it.kind == "rule" && it.plain && (it.prio == 512 || it.prio == 1536 && it.table == table):
			err = errors.Join(err, sendRaw(unix.RTM_DELRULE, it))
		case it.kind == "route" && it.table == unix.RT_TABLE_MAIN && it.raw[7] == unix.RTN_UNICAST:
			err = errors.Join(err, sendRaw(unix.RTM_DELROUTE, it))
		}
	}
	return err
}

// sendRaw sends what was dumped back, to delete it or to make it again.
func sendRaw(verb int, it *item) error {
	req := nl.NewNetlinkRequest(verb, unix.NLM_F_ACK)
	if verb == unix.RTM_NEWRULE {
		req.Flags |= unix.NLM_F_CREATE
	}
	body := slices.Clone(it.raw)
	nl.NativeEndian().PutUint32(body[8:], 0)
	req.AddData(message(body))
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	if err != nil && !isGone(err) {
		return fmt.Errorf("message %d for %s: %w", verb, it.text, err)
	}
	return nil
}

// message is a part of a request that is bytes already.
type message []byte

func (m message) Len() int          { return len(m) }
func (m message) Serialize() []byte { return m }
