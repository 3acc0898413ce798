package reconcile

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// What a record holds of host-local's reservations: exactly its container's, its interface's and its addresses.
func TestHeld(t *testing.T) {
	addr := netip.MustParseAddr
	file := func(ip, id, ifName string) attachment.Reservation {
		return attachment.Reservation{Address: addr(ip), ContainerID: id, IfName: ifName, File: ip}
	}
	rec := func(ips ...netip.Addr) *attachment.Record {
		return &attachment.Record{Key: attachment.Key{Network: "n", ContainerID: "c1", IfName: "eth0"}, IPs: ips}
	}
	two, three := addr("10.1.0.2"), addr("10.1.0.3")
	for name, c := range map[string]struct {
		rec  *attachment.Record
		all  []attachment.Reservation
		want []string
	}{
		"its own":                             {rec(two), []attachment.Reservation{file("10.1.0.2", "c1", "eth0"), file("10.1.0.3", "c1", "eth1"), file("10.1.0.4", "c2", "eth0")}, []string{"10.1.0.2"}},
		"the id came again with another":      {rec(two), []attachment.Reservation{file("10.1.0.3", "c1", "eth0")}, nil},
		"dual stack":                          {rec(two, addr("fd00::2")), []attachment.Reservation{file("10.1.0.2", "c1", "eth0"), file("fd00::2", "c1", "eth0")}, []string{"10.1.0.2", "fd00::2"}},
		"no address was recorded":             {rec(), []attachment.Reservation{file("10.1.0.2", "c1", "eth0")}, []string{"10.1.0.2"}},
		"first format":                        {rec(two), []attachment.Reservation{file("10.1.0.2", "c1", "")}, []string{"10.1.0.2"}},
		"first format beside an exact one":    {rec(two, three), []attachment.Reservation{file("10.1.0.2", "c1", "eth0"), file("10.1.0.3", "c1", "")}, []string{"10.1.0.2"}},
		"first format, another one's address": {rec(two), []attachment.Reservation{file("10.1.0.3", "c1", "")}, nil},
	} {
		var got []string
		for _, r := range held(c.rec, c.all) {
			got = append(got, r.File)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
