package kernel

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ErrInterrupted says that a listing changed again and again while it was read:
// what it does not show may exist all the same.
var ErrInterrupted = errors.New("kernel listing was interrupted too often")

// dumpTries is how often an interrupted dump is repeated.
const dumpTries = 8

// dump reads a listing; fn sees each message once per try and reset is called
// before each try.
func (h *Handle) dump(typ, answer uint16, reset func(), fn func([]byte), head []byte, attrs ...attr) error {
	groups := unmarked(typ, head[0])
	listening := false
	listen := func() error {
		listening = true
		return h.membership(unix.NETLINK_ADD_MEMBERSHIP, groups)
	}
	defer func() {
		if listening {
			_ = h.membership(unix.NETLINK_DROP_MEMBERSHIP, groups) // at worst, more is told than was asked for
			h.drain()                                              // a full socket takes no answer to the next request
		}
	}()
	// On a host they are often many, and to read them twice costs more than to be told; a pod has few.
	if typ == unix.RTM_GETRULE && h.host.IsZero() {
		if err := listen(); err != nil {
			return err
		}
	}
	for range dumpTries {
		reset()
		if listening {
			h.drain() // a full socket drops what it is told next, and says so only once
		}
		h.changed = false
		if err := h.send(typ, unix.NLM_F_DUMP, head, attrs); err != nil {
			return err
		}
		interrupted, err := h.receive(answer, fn)
		if err != nil {
			return err
		}
		if !interrupted && (h.parts < 2 || len(groups) == 0 || listening && !h.disturbed()) {
			return nil
		}
		if !listening {
			if err := listen(); err != nil {
				return err
			}
		}
	}
	return ErrInterrupted
}

// unmarked gives the groups that tell of changes to a listing of which the kernel
// itself does not say that it was interrupted. It goes by position in these (net/core/fib_rules.c, dump_rules;
// net/ipv6/ip6_fib.c, fib6_dump_table): one that comes in several datagrams silently lacks something when something
// before it was removed in between. IPv4 routes go by their prefix.
func unmarked(typ uint16, family byte) []int {
	switch {
	case typ == unix.RTM_GETRULE:
		return []int{unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE}
	case typ == unix.RTM_GETROUTE && family == unix.AF_INET6:
		return []int{unix.RTNLGRP_IPV6_ROUTE}
	}
	return nil
}

func (h *Handle) membership(option int, groups []int) error {
	for _, group := range groups {
		if err := unix.SetsockoptInt(h.fd, unix.SOL_NETLINK, option, group); err != nil {
			return err
		}
	}
	return nil
}

// told notes what somebody else did. Only a removal makes a listing lack
// something: what is added before the position is at worst listed twice.
func (h *Handle) told(typ uint16) {
	if typ == unix.RTM_DELRULE || typ == unix.RTM_DELROUTE {
		h.changed = true
	}
}

// disturbed reads what has been told since the answer's end, and says whether
// anything was removed during it.
func (h *Handle) disturbed() bool {
	h.drain()
	return h.changed
}

// drain reads what has been told, until there is no more.
func (h *Handle) drain() {
	for {
		n, _, _, _, err := unix.Recvmsg(h.fd, h.buf, nil, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOBUFS): // more was told than the socket holds
			h.changed = true
		case err != nil:
			h.changed = h.changed || !errors.Is(err, unix.EAGAIN)
			return
		case n >= unix.SizeofNlMsghdr:
			h.told(native.Uint16(h.buf[4:])) // notifications come one by one
		}
	}
}
