package kernel

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"golang.org/x/sys/unix"
)

// struct ndmsg (linux/neighbour.h): offsets of what is used here.
const (
	neighHeader = 12
	neighFamily = 0
	neighIndex  = 4
	neighState  = 8
	neighFlags  = 10
)

// Neighbours reads the permanent neighbours of a device, as the kernel filters
// them.
func (h *Handle) Neighbours(ifIndex int) ([]attachment.Neighbour, error) {
	return h.neighbours(fmt.Sprintf("list neighbours of link %d", ifIndex), unix.AF_UNSPEC, unix.NUD_PERMANENT, ifIndex)
}

// FDB reads the static forwarding entries that a bridge has for a port, as the
// kernel filters them. A device's own list (NTF_SELF) is the kernel's: multicast groups come and go in it.
func (h *Handle) FDB(ifIndex int) ([]attachment.Neighbour, error) {
	return h.neighbours(fmt.Sprintf("list forwarding entries of link %d", ifIndex), unix.AF_BRIDGE, unix.NUD_PERMANENT|unix.NUD_NOARP, ifIndex)
}

func (h *Handle) neighbours(what string, family uint8, states uint16, ifIndex int) ([]attachment.Neighbour, error) {
	msg := make([]byte, neighHeader)
	msg[neighFamily] = family
	var out []attachment.Neighbour
	err := h.dump(unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, func() { out = nil }, func(m []byte) {
		if n, ok := parseNeigh(m); ok && n.IfIndex == ifIndex && n.State&states != 0 && n.Flags&unix.NTF_SELF == 0 {
			out = append(out, n)
		}
	}, msg, attr{unix.NDA_IFINDEX, u32(uint32(ifIndex))})
	if gone(err) || errors.Is(err, unix.EINVAL) {
		return nil, nil // the filter names a device that is gone
	}
	return out, describe(what, err)
}

func parseNeigh(m []byte) (attachment.Neighbour, bool) {
	if len(m) < neighHeader {
		return attachment.Neighbour{}, false
	}
	n := attachment.Neighbour{
		Family: int(m[neighFamily]), IfIndex: int(int32(native.Uint32(m[neighIndex:]))),
		State: native.Uint16(m[neighState:]), Flags: m[neighFlags],
	}
	for t, v := range rtattr.Each(m[neighHeader:]) {
		switch t {
		case unix.NDA_DST:
			a, ok := netip.AddrFromSlice(v)
			if !ok || a.IsMulticast() {
				return n, false // the kernel's own
			}
			n.Dst = a.String()
		case unix.NDA_LLADDR:
			n.MAC = net.HardwareAddr(v).String()
		case unix.NDA_VLAN:
			n.Vlan = native.Uint16(v)
		}
	}
	return n, true
}

func neighDeletion(n attachment.Neighbour) request {
	msg := make([]byte, neighHeader)
	msg[neighFamily], msg[neighFlags] = byte(n.Family), n.Flags
	if n.Family == unix.AF_BRIDGE {
		msg[neighFlags] |= unix.NTF_MASTER // without it, any flag of the entry sends the request to the device's own list
	}
	native.PutUint32(msg[neighIndex:], uint32(n.IfIndex))
	native.PutUint16(msg[neighState:], n.State)
	var attrs []attr
	if a, err := netip.ParseAddr(n.Dst); err == nil {
		attrs = append(attrs, attr{unix.NDA_DST, a.AsSlice()})
	}
	if mac, err := net.ParseMAC(n.MAC); err == nil {
		attrs = append(attrs, attr{unix.NDA_LLADDR, mac})
	}
	if n.Vlan != 0 {
		attrs = append(attrs, attr{unix.NDA_VLAN, native.AppendUint16(nil, n.Vlan)})
	}
	return request{unix.RTM_DELNEIGH, msg, attrs}
}
