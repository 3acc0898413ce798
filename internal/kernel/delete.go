package kernel

import (
	"errors"
	"fmt"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"golang.org/x/sys/unix"
)

// Delete removes exactly this resource. The caller compared identities and
// claims; nothing here decides.
func (h *Handle) Delete(r attachment.Resource) error {
	crash.At("remove.before")
	q, err := deletion(r)
	if err == nil {
		err = h.do(q.typ, q.head, q.attrs...)
	}
	crash.At("remove.after")
	return deleted(r, err)
}

// errNeverAlone is of a kind that is removed together with another.
var errNeverAlone = errors.New("this kind is never deleted by itself")

// deletion is the request that removes a resource. Of a link only the index says which.
func deletion(r attachment.Resource) (request, error) {
	switch {
	case r.Link != nil:
		return request{typ: unix.RTM_DELLINK, head: ifInfo(r.Link.Index)}, nil
	case r.Rule != nil:
		return ruleDeletion(*r.Rule)
	case r.Route != nil:
		return routeDeletion(*r.Route)
	case r.Neigh != nil:
		return neighDeletion(*r.Neigh), nil
	}
	return request{}, errNeverAlone
}

// deleted says what the kernel's answer to a deletion means.
func deleted(r attachment.Resource, err error) error {
	switch {
	case gone(err), errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("delete %s: %w", r, attachment.ErrGone)
	case errors.Is(err, errNeverAlone):
		return fmt.Errorf("delete %s: %w", r, err)
	}
	return describe("delete "+r.String(), err)
}

// deleteInRow is Delete for each of what is no link, many requests at a time. One that got no answer is deleted by itself.
func (h *Handle) deleteInRow(rs []attachment.Resource, errs []error) {
	var at []int
	var qs []request
	for i, r := range rs {
		q, err := deletion(r)
		if err != nil {
			errs[i] = deleted(r, err)
			continue
		}
		at, qs = append(at, i), append(qs, q)
	}
	for n, err := range h.doAll(qs) {
		i := at[n]
		if errors.Is(err, errUnanswered) {
			errs[i] = h.Delete(rs[i])
			continue
		}
		errs[i] = deleted(rs[i], err)
	}
}
