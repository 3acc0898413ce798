package kernel

import (
	"fmt"
	"net/netip"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"golang.org/x/sys/unix"
)

// struct ifaddrmsg (linux/if_addr.h): offsets of what is used here.
const (
	addrHeader = 8
	addrPrefix = 1
	addrScope  = 3
	addrIndex  = 4
)

// Addresses reads the addresses of a device, without link-local ones, as the
// kernel filters them.
func (h *Handle) Addresses(l attachment.Link) ([]attachment.Address, error) {
	msg := make([]byte, addrHeader)
	native.PutUint32(msg[addrIndex:], uint32(l.Index))
	var out []attachment.Address
	err := h.dump(unix.RTM_GETADDR, unix.RTM_NEWADDR, func() { out = nil }, func(m []byte) {
		if len(m) < addrHeader || int(native.Uint32(m[addrIndex:])) != l.Index || m[addrScope] == unix.RT_SCOPE_LINK {
			return
		}
		v := rtattr.Get(m[addrHeader:], unix.IFA_LOCAL)
		if v == nil {
			v = rtattr.Get(m[addrHeader:], unix.IFA_ADDRESS)
		}
		if a, ok := netip.AddrFromSlice(v); ok {
			out = append(out, attachment.Address{Dev: l.Name, CIDR: fmt.Sprintf("%s/%d", a, m[addrPrefix])})
		}
	}, msg)
	if gone(err) {
		return nil, nil
	}
	return out, describe("list addresses of "+l.Name, err)
}
