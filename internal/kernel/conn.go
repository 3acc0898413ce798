package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"golang.org/x/sys/unix"
)

const (
	bufferSize = 1 << 16 // the kernel fills at most 32 KiB of a dump at once
	timeout    = 10      // seconds without an answer: the kernel answers at once or is broken
)

// Handle is a route netlink socket in one network namespace. It speaks netlink
// by itself, since each pod's start waits for it: no poller, no copies. It is not safe for concurrent use.
type Handle struct {
	fd   int
	seq  uint32
	port uint32
	buf  []byte
	host attachment.NamespaceID // of a pod's handle: the host's namespace

	parts   int  // datagrams in which the last answer's objects came
	changed bool // something that membership asked about was removed meanwhile
}

// newHandle opens a socket in the calling thread's namespace.
func newHandle() (*Handle, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink socket: %w", err)
	}
	h := &Handle{fd: fd, buf: make([]byte, bufferSize)}
	if err := h.setUp(); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("set up netlink socket: %w", err)
	}
	return h, nil
}

func (h *Handle) setUp() error {
	if err := unix.Bind(h.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	sa, err := unix.Getsockname(h.fd)
	if err != nil {
		return err
	}
	h.port = sa.(*unix.SockaddrNetlink).Pid
	// Kernel-side filters of dumps work only with strict checking (netlink(7), Linux 4.20). An older
	// kernel lists everything: each reading compares what it was asked for once more.
	err = unix.SetsockoptInt(h.fd, unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1)
	if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
		return err
	}
	return unix.SetsockoptTimeval(h.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: timeout})
}

// Close gives the socket back.
func (h *Handle) Close() { unix.Close(h.fd) }

// attr is an attribute of a request.
type attr struct {
	typ uint16
	val []byte
}

func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

// send writes one request.
func (h *Handle) send(typ, flags uint16, head []byte, attrs []attr) error {
	m := h.message(make([]byte, 0, 128), typ, flags, head, attrs)
	return unix.Sendto(h.fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// message appends a request with the next sequence number to a datagram.
func (h *Handle) message(datagram []byte, typ, flags uint16, head []byte, attrs []attr) []byte {
	h.seq++
	for len(datagram)%unix.NLMSG_ALIGNTO != 0 {
		datagram = append(datagram, 0)
	}
	at := len(datagram)
	m := append(append(datagram, make([]byte, unix.SizeofNlMsghdr)...), head...)
	for _, a := range attrs {
		m = rtattr.Append(m, a.typ, a.val)
	}
	native.PutUint32(m[at:], uint32(len(m)-at))
	native.PutUint16(m[at+4:], typ)
	native.PutUint16(m[at+6:], flags|unix.NLM_F_REQUEST)
	native.PutUint32(m[at+8:], h.seq)
	return m
}

var errTruncated = errors.New("netlink message is larger than the buffer")

// receive reads the answer to the last request; fn sees the body of each message
// of the wanted type, which is valid until fn returns.
func (h *Handle) receive(want uint16, fn func(body []byte)) (interrupted bool, err error) {
	h.parts = 0
	for {
		n, _, flags, _, err := unix.Recvmsg(h.fd, h.buf, nil, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ENOBUFS) {
			interrupted = true // more changes than the socket holds; the answer itself is not dropped
			continue
		}
		if err != nil {
			return interrupted, err
		}
		if flags&unix.MSG_TRUNC != 0 {
			return interrupted, errTruncated
		}
		part := 1 // the first object in it counts
		for b := h.buf[:n]; len(b) >= unix.SizeofNlMsghdr; {
			size := int(native.Uint32(b))
			if size < unix.SizeofNlMsghdr || size > len(b) {
				return interrupted, errTruncated
			}
			typ, mflags := native.Uint16(b[4:]), native.Uint16(b[6:])
			seq, port := native.Uint32(b[8:]), native.Uint32(b[12:])
			body := b[unix.SizeofNlMsghdr:size]
			b = b[min((size+3)&^3, len(b)):]
			if port != h.port {
				h.told(typ)
				continue
			}
			if seq != h.seq {
				continue // the rest of an answer that was given up
			}
			interrupted = interrupted || mflags&unix.NLM_F_DUMP_INTR != 0
			switch typ {
			case unix.NLMSG_ERROR, unix.NLMSG_DONE:
				return interrupted, result(body)
			case want:
				h.parts, part = h.parts+part, 0
				fn(body)
			}
			if mflags&unix.NLM_F_MULTI == 0 {
				return interrupted, nil
			}
		}
	}
}

// result reads the errno of an acknowledgement or of a dump's end.
func result(body []byte) error {
	if len(body) < 4 {
		return nil
	}
	if n := int32(native.Uint32(body)); n != 0 {
		return unix.Errno(-n)
	}
	return nil
}

// get reads a single object into fn; false when the kernel has none.
func (h *Handle) get(typ, answer uint16, fn func([]byte), head []byte, attrs ...attr) (bool, error) {
	if err := h.send(typ, 0, head, attrs); err != nil {
		return false, err
	}
	found := false
	_, err := h.receive(answer, func(m []byte) { found = true; fn(m) })
	if gone(err) {
		return false, nil
	}
	return found, err
}

// do sends a request that is only acknowledged.
func (h *Handle) do(typ uint16, head []byte, attrs ...attr) error {
	if err := h.send(typ, unix.NLM_F_ACK, head, attrs); err != nil {
		return err
	}
	_, err := h.receive(0, func([]byte) {})
	return err
}

// gone are the answers by which the kernel says that there is no such object.
func gone(err error) bool {
	return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENXIO)
}

// NSID asks by which id this namespace knows the one at path; -1 when it does
// not, or when another one than want is there by now.
func (h *Handle) NSID(path string, want attachment.NamespaceID) int {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1
	}
	defer unix.Close(fd)
	if id, err := namespaceOf(fd, path); err != nil || id != want {
		return -1
	}
	return h.nsidOf(fd)
}

// nsidOf sends struct rtgenmsg (linux/rtnetlink.h), padded as netlink wants it.
func (h *Handle) nsidOf(fd int) int {
	nsid := -1
	_, _ = h.get(unix.RTM_GETNSID, unix.RTM_NEWNSID, func(m []byte) {
		if len(m) < 4 {
			return
		}
		if v := rtattr.Get(m[4:], unix.NETNSA_NSID); len(v) >= 4 {
			nsid = int(int32(native.Uint32(v)))
		}
	}, make([]byte, 4), attr{unix.NETNSA_FD, u32(uint32(fd))})
	return nsid
}

var native = binary.NativeEndian

func describe(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, os.NewSyscallError("netlink", err))
}
