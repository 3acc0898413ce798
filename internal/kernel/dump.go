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
		}
	}()
	if typ == unix.RTM_GETRULE { // often many: to read them twice costs more than to be told
		if err := listen(); err != nil {
			return err
		}
	}
	for range dumpTries {
		reset()
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

// disturbed reads what has been told since the answer's end, and says whether
// anything was told during it.
func (h *Handle) disturbed() bool {
	for {
		_, _, _, _, err := unix.Recvmsg(h.fd, h.buf, nil, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return h.changed
		case err != nil && !errors.Is(err, unix.ENOBUFS):
			return true
		default:
			h.changed = true
		}
	}
}
