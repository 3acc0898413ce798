package kernel

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"golang.org/x/sys/unix"
)

var (
	tableNames    = map[string]int{"default": unix.RT_TABLE_DEFAULT, "main": unix.RT_TABLE_MAIN, "local": unix.RT_TABLE_LOCAL}
	protocolNames = map[string]int{"kernel": unix.RTPROT_KERNEL, "boot": unix.RTPROT_BOOT, "static": unix.RTPROT_STATIC}
	actionNames   = map[string]byte{"nop": unix.FR_ACT_NOP, "blackhole": unix.FR_ACT_BLACKHOLE, "unreachable": unix.FR_ACT_UNREACHABLE, "prohibit": unix.FR_ACT_PROHIBIT}
)

// encoder writes the header and attributes of a rule or route as the kernel dumps them.
type encoder struct {
	head  []byte
	attrs []byte
	six   bool
}

func (e *encoder) attr(typ uint16, v []byte) { e.attrs = rtattr.Append(e.attrs, typ, v) }

// prefix reads an address or prefix into an attribute; its length is the answer.
func (e *encoder) prefix(w *words, typ uint16, s string) byte {
	if s == "all" || s == "default" {
		return 0
	}
	if !strings.Contains(s, "/") {
		if a, err := netip.ParseAddr(s); err == nil {
			s = netip.PrefixFrom(a, a.BitLen()).String()
		}
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Addr().Is6() != e.six {
		w.fail(s)
		return 0
	}
	if p.Bits() > 0 {
		e.attr(typ, p.Addr().AsSlice())
	}
	return byte(p.Bits())
}

// table writes the table into header and attributes.
func (e *encoder) table(at int, typ uint16, table int) {
	e.head[at] = byte(table)
	if table > 255 {
		e.head[at] = unix.RT_TABLE_COMPAT
	}
	e.attr(typ, u32(uint32(table)))
}

func newEncoder(size int, six bool) *encoder {
	e := &encoder{head: make([]byte, size), six: six}
	e.head[0] = unix.AF_INET
	if six {
		e.head[0] = unix.AF_INET6
	}
	return e
}

func (f *Fake) addRule(w *words, six bool) error {
	e := newEncoder(ruleHeader, six)
	protocol, table, suppress := unix.RTPROT_UNSPEC, unix.RT_TABLE_MAIN, -1
	e.head[ruleAction] = unix.FR_ACT_TO_TBL
	for len(w.left) > 0 && w.err == nil {
		switch key := w.next(); key {
		case "not":
			e.head[ruleFlags] |= ruleInvert
		case "pref", "priority":
			if n := w.int(); n != 0 {
				e.attr(unix.FRA_PRIORITY, u32(uint32(n)))
			}
		case "from":
			e.head[ruleSrcLen] = e.prefix(w, unix.FRA_SRC, w.next())
		case "to":
			e.head[ruleDstLen] = e.prefix(w, unix.FRA_DST, w.next())
		case "iif":
			e.attr(unix.FRA_IIFNAME, append([]byte(w.next()), 0))
		case "oif":
			e.attr(unix.FRA_OIFNAME, append([]byte(w.next()), 0))
		case "fwmark":
			mark, mask, both := strings.Cut(w.next(), "/")
			if !both {
				mask = "0xffffffff"
			}
			e.attr(unix.FRA_FWMARK, u32(uint32(w.number(mark, nil))))
			e.attr(unix.FRA_FWMASK, u32(uint32(w.number(mask, nil))))
		case "tos":
			e.head[ruleTos] = byte(w.int())
		case "ipproto":
			e.attr(unix.FRA_IP_PROTO, []byte{byte(w.number(w.next(), map[string]int{"tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP}))})
		case "sport", "dport":
			typ := uint16(unix.FRA_SPORT_RANGE)
			if key == "dport" {
				typ = unix.FRA_DPORT_RANGE
			}
			from, to := w.pair()
			e.attr(typ, native.AppendUint16(native.AppendUint16(nil, uint16(from)), uint16(to)))
		case "uidrange":
			from, to := w.pair()
			e.attr(unix.FRA_UID_RANGE, append(u32(uint32(from)), u32(uint32(to))...))
		case "suppress_prefixlength":
			suppress = w.int()
		case "protocol":
			protocol = w.number(w.next(), protocolNames)
		case "lookup", "table":
			table = w.number(w.next(), tableNames)
		case "goto":
			e.head[ruleAction], table = unix.FR_ACT_GOTO, 0
			e.attr(unix.FRA_GOTO, u32(uint32(w.int())))
		default:
			action, ok := actionNames[key]
			if !ok {
				w.fail(key)
			}
			e.head[ruleAction] = action
		}
	}
	e.table(ruleTable, unix.FRA_TABLE, table)
	e.attr(unix.FRA_SUPPRESS_PREFIXLEN, u32(uint32(suppress)))
	e.attr(unix.FRA_PROTOCOL, []byte{byte(protocol)})
	r := parseRule(append(e.head, e.attrs...))
	if slices.ContainsFunc(f.rules, r.Equal) {
		return unix.EEXIST
	}
	f.putRule(r)
	return nil
}

// putRule puts a rule behind those of the same priority, as the kernel does.
func (f *Fake) putRule(r attachment.Rule) {
	at := slices.IndexFunc(f.rules, func(o attachment.Rule) bool {
		return o.Family == r.Family && o.Priority > r.Priority || o.Family > r.Family // IPv4's before IPv6's
	})
	if at < 0 {
		at = len(f.rules)
	}
	f.rules = slices.Insert(f.rules, at, r)
}
