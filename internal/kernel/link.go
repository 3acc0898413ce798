package kernel

import (
	"bytes"
	"fmt"
	"net"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"golang.org/x/sys/unix"
)

// LinkByIndex reads one device; nil when there is none.
func (h *Handle) LinkByIndex(index int) (*attachment.Link, error) {
	return h.link(fmt.Sprintf("read link %d", index), ifInfo(index))
}

// LinkByName reads one device; nil when there is none.
func (h *Handle) LinkByName(name string) (*attachment.Link, error) {
	if name == "" || len(name) >= unix.IFNAMSIZ {
		return nil, nil // what a prevResult calls an interface need not be one
	}
	return h.link("read link "+name, ifInfo(0), attr{unix.IFLA_IFNAME, append([]byte(name), 0)})
}

// ifInfo is struct ifinfomsg (linux/rtnetlink.h) with an index.
func ifInfo(index int) []byte {
	m := make([]byte, unix.SizeofIfInfomsg)
	native.PutUint32(m[4:], uint32(index))
	return m
}

// skipStats leaves counters out of the answer (RTEXT_FILTER_SKIP_STATS,
// linux/rtnetlink.h).
var skipStats = attr{unix.IFLA_EXT_MASK, u32(1 << 3)}

func (h *Handle) link(what string, head []byte, attrs ...attr) (l *attachment.Link, err error) {
	_, err = h.get(unix.RTM_GETLINK, unix.RTM_NEWLINK, func(m []byte) { l = parseLink(m) }, head, append(attrs, skipStats)...)
	return l, describe(what, err)
}

// Links reads every device: only for what no single reading can answer.
func (h *Handle) Links() ([]attachment.Link, error) {
	var out []attachment.Link
	err := h.dump(unix.RTM_GETLINK, unix.RTM_NEWLINK, func() { out = nil }, func(m []byte) {
		if l := parseLink(m); l != nil {
			out = append(out, *l)
		}
	}, ifInfo(0), skipStats)
	return out, describe("list links", err)
}

func parseLink(m []byte) *attachment.Link {
	if len(m) < unix.SizeofIfInfomsg {
		return nil
	}
	l := &attachment.Link{Index: int(int32(native.Uint32(m[4:]))), ParentNetnsID: -1}
	for t, v := range rtattr.Each(m[unix.SizeofIfInfomsg:]) {
		number := 0
		if len(v) >= 4 {
			number = int(int32(native.Uint32(v)))
		}
		switch t {
		case unix.IFLA_IFNAME:
			l.Name = text(v)
		case unix.IFLA_ADDRESS:
			if len(bytes.Trim(v, "\x00")) > 0 { // lo's is all zeros
				l.MAC = net.HardwareAddr(v).String()
			}
		case unix.IFLA_MTU:
			l.MTU = number
		case unix.IFLA_MASTER:
			l.Master = number
		case unix.IFLA_LINK:
			l.Parent = number
		case unix.IFLA_LINK_NETNSID:
			l.ParentNetnsID = max(number, -1)
		case unix.IFLA_IFALIAS:
			l.Alias = text(v)
		case unix.IFLA_LINKINFO:
			l.Kind = text(rtattr.Get(v, unix.IFLA_INFO_KIND))
		}
	}
	return l
}
