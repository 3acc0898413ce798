package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var (
	errAway    = errors.New("the daemon is away")
	errRefused = errors.New("the daemon refuses")
)

// primaryAdd is the primary's part of an ADD: addresses, links, routes, rules and a result.
func (w *world) primaryAdd(a *att, o *op) error {
	before, err := list()
	if err != nil {
		return err
	}
	failed := w.makeAll(a, o)
	after, err := list()
	if err != nil {
		return err
	}
	w.forgive(before, after, nil)
	if failed != nil {
		return failed
	}
	a.result = a.makeResult()
	clear(a.need)
	clear(a.found)
	for text, it := range after.items {
		if a.wants(it) {
			a.need[text], a.made[text] = true, true
			a.found[text] = before.has(text)
		}
	}
	a.had = len(a.need)
	a.window, a.known, a.deleted, a.cut, a.renamed = true, false, false, false, false
	return nil
}

// makeAll makes what the kind of primary makes, up to the first thing that it cannot.
func (w *world) makeAll(a *att, o *op) (err error) {
	n := a.net
	if !n.up {
		return errAway
	}
	if len(a.ips) > 0 && !n.fixedName {
		return fmt.Errorf("%s exists already", a.IfName)
	}
	if a.ips, err = w.reserve(a, o); err != nil {
		return err
	}
	a.holds = true
	a.table = []uint32{unix.RT_TABLE_MAIN, 102, 103}[o.rand.IntN(3)]
	if err := w.plumb(a); err != nil {
		return fmt.Errorf("primary of %s: %w", a.Key, err)
	}
	if err := w.addRules(a, o.chance(25)); err != nil {
		return fmt.Errorf("rules of %s: %w", a.Key, err)
	}
	return nil
}

// wants says which of the node's things the primary's ADD made, or found and relies on.
func (a *att) wants(it *item) bool {
	switch it.kind {
	case "rule":
		if a.net.iifRules && it.name == a.link && it.prio == 10 && it.table == a.table && len(it.ips) == 0 {
			return true
		}
		return a.net.rules && it.plain && slices.Contains(a.ips, it.ips[0]) && (it.prio == 512 || it.prio == 1536 && it.table == a.table)
	}
	return a.index != 0 && it.index == a.index || it.kind == "link" && a.isFurther(it.index)
}

// plumb makes links, addresses, routes and neighbours.
func (w *world) plumb(a *att) error {
	n := a.net
	w.serial++
	a.link = n.linkName(a.sb.slot.name, a.IfName, w.serial)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Flags = a.link, net.FlagUp
	ns, err := unix.Open(a.sb.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ns)
	if n.macvlan {
		attrs.Name, attrs.ParentIndex, attrs.Namespace = a.IfName, w.uplink, netlink.NsFd(ns)
		if err := w.nl.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}); err != nil {
			return fmt.Errorf("add macvlan: %w", err)
		}
		return a.dressPod()
	}
	if n.fixedName { // what has the name is an earlier sandbox's, or this one's of an earlier ADD
		if old, err := w.nl.LinkByName(a.link); err == nil {
			if err := w.nl.LinkDel(old); err != nil && !errors.Is(err, unix.ENODEV) {
				return fmt.Errorf("remove the old %s: %w", a.link, err)
			}
		}
	}
	attrs.HardwareAddr = n.mac
	if n.master {
		attrs.MasterIndex = w.bridge
	}
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: a.IfName, PeerNamespace: netlink.NsFd(ns)}
	if err := w.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("add %s: %w", a.link, err)
	}
	l, err := w.nl.LinkByName(a.link)
	if err != nil {
		return err
	}
	a.index = l.Attrs().Index
	if err := a.dressPod(); err != nil {
		return err
	}
	if n.further && w.serial%3 == 0 {
		if err := w.plumbFurther(a, ns); err != nil {
			return err
		}
	}
	return w.dressHost(a)
}

// dressHost gives the host's end of the veth its routes, neighbours and forwarding entries.
func (w *world) dressHost(a *att) error {
	mac := net.HardwareAddr{2, 0, a.net.id, 0, byte(a.index >> 8), byte(a.index)}
	for _, ip := range a.ips {
		if a.net.routes {
			r := &netlink.Route{LinkIndex: a.index, Dst: host(ip), Scope: netlink.SCOPE_LINK}
			if ip.Is6() {
				r.Scope = netlink.SCOPE_UNIVERSE
			}
			if err := w.nl.RouteReplace(r); err != nil {
				return fmt.Errorf("route to %s: %w", ip, err)
			}
		}
		if a.net.neigh {
			e := &netlink.Neigh{LinkIndex: a.index, IP: net.IP(ip.AsSlice()), HardwareAddr: mac, State: netlink.NUD_PERMANENT}
			if err := w.nl.NeighSet(e); err != nil {
				return fmt.Errorf("neighbour %s: %w", ip, err)
			}
		}
	}
	if a.net.master {
		e := &netlink.Neigh{LinkIndex: a.index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER, HardwareAddr: mac, State: netlink.NUD_NOARP}
		if err := w.nl.NeighSet(e); err != nil {
			return fmt.Errorf("forwarding entry: %w", err)
		}
	}
	return nil
}

// dressPod gives the pod's end its addresses.
func (a *att) dressPod() error {
	return inNetns(a.sb.path, func(h *netlink.Handle) error {
		l, err := h.LinkByName(a.IfName)
		if err != nil {
			return err
		}
		if err := h.LinkSetUp(l); err != nil {
			return err
		}
		for _, ip := range a.ips {
			addr := &netlink.Addr{IPNet: host(ip)}
			if ip.Is6() {
				addr.Flags = unix.IFA_F_NODAD
			}
			if err := h.AddrAdd(l, addr); err != nil {
				return fmt.Errorf("address %s: %w", ip, err)
			}
		}
		return nil
	})
}

func host(ip netip.Addr) *net.IPNet {
	return &net.IPNet{IP: net.IP(ip.AsSlice()), Mask: net.CIDRMask(ip.BitLen(), ip.BitLen())}
}

// makeResult is the prevResult of the kind of primary, with its oddities.
func (a *att) makeResult() json.RawMessage {
	interfaces, ips := a.furtherInterfaces(), []any(nil)
	if !a.net.macvlan {
		i := map[string]any{"name": a.link}
		if a.net.mac != nil {
			i["mac"] = a.net.mac.String()
		}
		interfaces = append(interfaces, i)
	}
	inside := map[string]any{"name": a.IfName, "sandbox": a.sb.path}
	if a.net.aws {
		inside["mac"] = fmt.Sprint(a.table)
	}
	interfaces = append(interfaces, inside)
	if a.net.aws {
		interfaces = append(interfaces, map[string]any{"name": "dummy" + a.link, "mac": "0", "sandbox": "0"})
	}
	for _, ip := range a.ips {
		ips = append(ips, map[string]any{"address": netip.PrefixFrom(ip, ip.BitLen()).String(), "interface": len(interfaces) - 1})
	}
	b, _ := json.Marshal(map[string]any{"cniVersion": "1.1.0", "interfaces": interfaces, "ips": ips, "model": "kept"})
	return b
}
