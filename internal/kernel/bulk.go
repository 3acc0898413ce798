package kernel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"github.com/backstop-cni/backstop/internal/rtattr"
	"golang.org/x/sys/unix"
)

// The kernel waits for every CPU to let go of a link that is removed, some 20 ms for each veth. Links that are removed as
// a group wait together.
const (
	groupFrom = 4   // fewer links go one by one
	groupMost = 128 // everybody else's netlink waits meanwhile
)

// DeleteAll removes in this order, links that stand together as one group, and of the others many with one request. A link
// goes only while its index still is that link's.
func (h *Handle) DeleteAll(rs []attachment.Resource) []error {
	errs := make([]error, len(rs))
	for i := 0; i < len(rs); {
		n := links(rs[i:])
		switch {
		case n == 0:
			n = others(rs[i:])
			h.deleteInRow(rs[i:i+n], errs[i:i+n])
		case n < groupFrom:
			for k := i; k < i+n; k++ {
				errs[k] = h.deleteOne(rs[k])
			}
		default:
			n = min(n, groupMost)
			h.deleteGroup(rs[i:i+n], errs[i:i+n])
		}
		i += n
	}
	return errs
}

// links counts those at the beginning that may go together: an ifb waits for the veth that is mirrored to it.
func links(rs []attachment.Resource) int {
	for i, r := range rs {
		if r.Link == nil || (r.Link.Kind == "ifb") != (rs[0].Link.Kind == "ifb") {
			return i
		}
	}
	return len(rs)
}

// others counts those at the beginning that are no links.
func others(rs []attachment.Resource) int {
	if i := slices.IndexFunc(rs, func(r attachment.Resource) bool { return r.Link != nil }); i >= 0 {
		return i
	}
	return len(rs)
}

// changed is what becomes of a link that is another one, or none, by now.
func changed(want attachment.Link, is *attachment.Link) error {
	switch {
	case is == nil:
		return fmt.Errorf("delete %s: %w", want, attachment.ErrGone)
	case !is.Same(want):
		return fmt.Errorf("delete %s: its index is that of %s by now: %w", want, is, attachment.ErrGone)
	}
	return nil
}

func (h *Handle) deleteOne(r attachment.Resource) error {
	is, err := h.LinkByIndex(r.Link.Index)
	if err == nil {
		err = changed(*r.Link, is)
	}
	if err != nil {
		return err
	}
	return h.Delete(r)
}

// deleteGroup is a compare-and-delete: the links get a group of their own (IFLA_GROUP, rtnetlink(7)), are looked at once
// more, and go with that group. What is another link by then gets its old group back. Where that does not work they
// go one by one.
func (h *Handle) deleteGroup(rs []attachment.Resource, errs []error) {
	group := rand.Uint32N(1<<30) + 1<<30 // nobody's: people use small numbers
	before, err := h.groups()
	if err == nil {
		var mark []request
		for _, r := range rs {
			if _, there := before[r.Link.Index]; there {
				mark = append(mark, grouping(r.Link.Index, group))
			}
		}
		_ = h.doAll(mark) // whether it worked is seen next
		crash.At("group.marked")
		err = h.compare(rs, errs, group, before)
	}
	crash.At("group.compared")
	if err == nil {
		err = h.do(unix.RTM_DELLINK, ifInfo(0), attr{unix.IFLA_GROUP, u32(group)})
	}
	crash.At("group.removed")
	if err == nil {
		return
	}
	for i, r := range rs { // nothing was deleted
		if errs[i] == nil {
			_ = h.setGroup(r.Link.Index, before[r.Link.Index].group)
			errs[i] = h.deleteOne(r)
		}
	}
}

// member is a link and the group that it is in.
type member struct {
	link  attachment.Link
	group uint32
}

var errNobody = errors.New("the group has other members than it should")

// compare leaves those links in the group that are the wanted ones, and says of the others why they are not.
func (h *Handle) compare(rs []attachment.Resource, errs []error, group uint32, before map[int]member) error {
	now, err := h.groups()
	if err != nil {
		return err
	}
	wanted := 0
	for i, r := range rs {
		m, there := now[r.Link.Index]
		if !there {
			errs[i] = changed(*r.Link, nil)
			continue
		}
		if errs[i] = changed(*r.Link, &m.link); errs[i] == nil {
			wanted++
		} else if m.group == group {
			if err := h.setGroup(r.Link.Index, before[r.Link.Index].group); err != nil {
				return err
			}
			delete(now, r.Link.Index)
		}
	}
	members := 0
	for _, m := range now {
		if m.group == group {
			members++
		}
	}
	if wanted == 0 || members != wanted {
		return errNobody
	}
	return nil
}

func (h *Handle) setGroup(index int, group uint32) error {
	q := grouping(index, group)
	return describe("set group of link", h.do(q.typ, q.head, q.attrs...))
}

func grouping(index int, group uint32) request {
	return request{typ: unix.RTM_SETLINK, head: ifInfo(index), attrs: []attr{{unix.IFLA_GROUP, u32(group)}}}
}

// groups lists every link with its group.
func (h *Handle) groups() (map[int]member, error) {
	var out map[int]member
	err := h.dump(unix.RTM_GETLINK, unix.RTM_NEWLINK, func() { out = map[int]member{} }, func(m []byte) {
		l := parseLink(m)
		if l == nil {
			return
		}
		group := uint32(0)
		if v := rtattr.Get(m[unix.SizeofIfInfomsg:], unix.IFLA_GROUP); len(v) == 4 {
			group = native.Uint32(v)
		}
		out[l.Index] = member{*l, group}
	}, ifInfo(0), skipStats)
	return out, describe("list links", err)
}
