package kernel

import (
	"errors"

	"golang.org/x/sys/unix"
)

// request is one message that is only acknowledged.
type request struct {
	typ   uint16
	head  []byte
	attrs []attr
}

// atOnce is how many requests are written before their answers are read: these must fit into the socket's receive
// buffer (212,992 bytes unless the node says otherwise, somewhat under 1 KiB for each, and as much for what a listener is told).
const atOnce = 64

// errUnanswered is of a request whose acknowledgement was not seen. It may have been carried out.
var errUnanswered = errors.New("the kernel's acknowledgement was lost")

// doAll is do for each, in this order: the kernel works through the messages of one datagram one after the other and
// goes on after one that fails (netlink_rcv_skb, net/netlink/af_netlink.c).
func (h *Handle) doAll(qs []request) []error {
	errs := make([]error, 0, len(qs))
	for len(qs) > 0 {
		n := min(len(qs), atOnce)
		errs = append(errs, h.doSome(qs[:n])...)
		qs = qs[n:]
	}
	return errs
}

func (h *Handle) doSome(qs []request) []error {
	errs := make([]error, len(qs))
	first := h.seq + 1
	var m []byte
	for i, q := range qs {
		errs[i] = errUnanswered
		m = h.message(m, q.typ, unix.NLM_F_ACK, q.head, q.attrs)
	}
	if err := unix.Sendto(h.fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return errs // each is tried by itself
	}
	wait := 0
	for open := len(qs); open > 0; {
		n, _, flags, _, err := unix.Recvmsg(h.fd, h.buf, nil, wait)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ENOBUFS) {
			wait = unix.MSG_DONTWAIT // the kernel drops everything until what it kept has been read
			continue
		}
		if err != nil || flags&unix.MSG_TRUNC != 0 {
			return errs
		}
		for b := h.buf[:n]; len(b) >= unix.SizeofNlMsghdr; {
			size := int(native.Uint32(b))
			if size < unix.SizeofNlMsghdr || size > len(b) {
				return errs
			}
			typ, i := native.Uint16(b[4:]), int(int32(native.Uint32(b[8:])-first))
			port, body := native.Uint32(b[12:]), b[unix.SizeofNlMsghdr:size]
			b = b[min((size+3)&^3, len(b)):]
			switch {
			case port != h.port:
				h.told(typ)
			case typ == unix.NLMSG_ERROR && i >= 0 && i < len(qs) && errors.Is(errs[i], errUnanswered):
				errs[i] = result(body)
				open--
			}
		}
	}
	return errs
}
