package kernel

import (
	"errors"
	"fmt"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

// Delete removes exactly this resource. The caller compared identities and
// claims; nothing here decides.
func (h *Handle) Delete(r attachment.Resource) error {
	var err error
	switch {
	case r.Link != nil:
		err = h.deleteLink(*r.Link)
	case r.Rule != nil:
		err = h.deleteRule(*r.Rule)
	case r.Route != nil:
		err = h.deleteRoute(*r.Route)
	case r.Neigh != nil:
		err = h.deleteNeigh(*r.Neigh)
	default:
		return fmt.Errorf("delete %s: this kind is never deleted by itself", r)
	}
	if gone(err) || errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("delete %s: %w", r, attachment.ErrGone)
	}
	return describe("delete "+r.String(), err)
}
