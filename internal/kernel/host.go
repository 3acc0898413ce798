package kernel

import (
	"net/netip"

	"github.com/backstop-cni/backstop/attachment"
)

// Host is what is read and removed in the host's namespace. Handle does it with
// the kernel, Fake in memory; one suite of tests holds both to the same behaviour.
// Readings of single objects give nil when there is none.
type Host interface {
	LinkByIndex(index int) (*attachment.Link, error)
	LinkByName(name string) (*attachment.Link, error)
	Links() ([]attachment.Link, error)
	Rules(attachment.RuleFilter) ([]attachment.Rule, error)
	RoutesOver(oifs ...int) ([]attachment.Route, error)
	RoutesIn(table uint32) ([]attachment.Route, error)
	RouteTo(netip.Addr) (*attachment.Route, error)
	Neighbours(ifIndex int) ([]attachment.Neighbour, error)
	FDB(ifIndex int) ([]attachment.Neighbour, error)
	// Delete removes exactly this resource; attachment.ErrGone when it is not there.
	Delete(attachment.Resource) error
	// DeleteAll is Delete for each, in this order, but for a link whose index is another one's by now: ErrGone.
	DeleteAll([]attachment.Resource) []error
}

var _ Host = (*Handle)(nil)
