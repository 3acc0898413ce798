package teardown

import (
	"net/netip"

	"github.com/backstop-cni/backstop/attachment"
)

// Kernel is the host's namespace as a teardown needs it. Readings of single
// objects give nil when there is none.
type Kernel interface {
	LinkByIndex(index int) (*attachment.Link, error)
	LinkByName(name string) (*attachment.Link, error)
	Links() ([]attachment.Link, error)
	Rules(attachment.RuleFilter) ([]attachment.Rule, error)
	RoutesOver(oifs ...int) ([]attachment.Route, error)
	RoutesIn(table uint32) ([]attachment.Route, error)
	RouteTo(netip.Addr) (*attachment.Route, error)
	Neighbours(ifIndex int) ([]attachment.Neighbour, error)
	FDB(ifIndex int) ([]attachment.Neighbour, error)
	// DeleteAll removes in this order, and gives an error for each: attachment.ErrGone for what is gone, and for a link
	// whose index is another one's by now.
	DeleteAll([]attachment.Resource) []error
}
