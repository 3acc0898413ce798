package kernel

import (
	"fmt"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/vishvananda/netlink"
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
	var bad error
	_, err = h.get(unix.RTM_GETLINK, unix.RTM_NEWLINK, func(m []byte) { l, bad = parseLink(m) }, head, append(attrs, skipStats)...)
	if err == nil {
		err = bad
	}
	return l, describe(what, err)
}

// Links reads every device: only for what no single reading can answer.
func (h *Handle) Links() ([]attachment.Link, error) {
	var out []attachment.Link
	var bad error
	err := h.dump(unix.RTM_GETLINK, unix.RTM_NEWLINK, func() { out = nil }, func(m []byte) {
		l, err := parseLink(m)
		if err != nil {
			bad = err
			return
		}
		out = append(out, *l)
	}, ifInfo(0), skipStats)
	if err == nil {
		err = bad
	}
	return out, describe("list links", err)
}

func parseLink(m []byte) (*attachment.Link, error) {
	d, err := netlink.LinkDeserialize(nil, slices.Clone(m)) // it keeps parts of m
	if err != nil {
		return nil, err
	}
	a := d.Attrs()
	l := &attachment.Link{
		Index: a.Index, Name: a.Name, MAC: a.HardwareAddr.String(), MTU: a.MTU,
		Master: a.MasterIndex, Parent: a.ParentIndex, ParentNetnsID: -1,
	}
	if k := d.Type(); k != "device" { // the library's word for "no kind"
		l.Kind = k
	}
	if a.NetNsID >= 0 {
		l.ParentNetnsID = a.NetNsID
	}
	return l, nil
}

// deleteLink removes the device of this index. The caller compared its identity.
func (h *Handle) deleteLink(l attachment.Link) error { return h.do(unix.RTM_DELLINK, ifInfo(l.Index)) }
