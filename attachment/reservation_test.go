package attachment

import (
	"net/netip"
	"testing"
)

func TestReservationIsOfExactlyOneAttachment(t *testing.T) {
	k := Key{"net", "c1", "eth0"}
	for name, c := range map[string]struct {
		r    Reservation
		want bool
	}{
		"container and interface": {Reservation{ContainerID: "c1", IfName: "eth0"}, true},
		"another interface":       {Reservation{ContainerID: "c1", IfName: "net1"}, false},
		"another container":       {Reservation{ContainerID: "c2", IfName: "eth0"}, false},
		"a longer id":             {Reservation{ContainerID: "c11", IfName: "eth0"}, false},
		"file of an old version":  {Reservation{ContainerID: "c1"}, true},
		"old, another container":  {Reservation{ContainerID: "c2"}, false},
		"empty file":              {Reservation{}, false},
	} {
		if got := c.r.Of(k); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestReservationInWords(t *testing.T) {
	r := Reservation{Address: netip.MustParseAddr("10.0.0.2"), File: "/var/lib/cni/networks/net/10.0.0.2"}
	if got, want := r.String(), "10.0.0.2 in /var/lib/cni/networks/net"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
