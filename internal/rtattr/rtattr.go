// Package rtattr walks and normalises the attributes of routing netlink
// messages (struct rtattr, linux/rtnetlink.h) without copying them.
package rtattr

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
)

const header = 4

// Each yields type and value of each attribute in b, and stops at the first
// that does not fit.
func Each(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= header {
			n := int(binary.NativeEndian.Uint16(b))
			if n < header || n > len(b) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(b[2:]), b[header:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}

// Get gives the value of the first attribute of a type, nil when there is none.
func Get(b []byte, typ uint16) []byte {
	for t, v := range Each(b) {
		if t == typ {
			return v
		}
	}
	return nil
}

// Normal copies the attributes in b in the order of their types, without those
// of the types to drop: equal objects become equal bytes.
func Normal(b []byte, drop ...uint16) []byte {
	type attr struct {
		typ uint16
		val []byte
	}
	var all []attr
	for t, v := range Each(b) {
		if !slices.Contains(drop, t) {
			all = append(all, attr{t, v})
		}
	}
	slices.SortFunc(all, func(a, b attr) int {
		return cmp.Or(cmp.Compare(a.typ, b.typ), bytes.Compare(a.val, b.val))
	})
	var out []byte
	for _, a := range all {
		out = Append(out, a.typ, a.val)
	}
	return out
}

// Append adds an attribute, padded to four bytes.
func Append(b []byte, typ uint16, val []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(header+len(val)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, val...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}
