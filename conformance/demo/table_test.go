package main

import (
	"testing"

	"github.com/backstop-cni/backstop/internal/testnode"
)

func TestSideBySide(t *testing.T) {
	got := sideBySide([]string{"before", "pod up", "after DEL"}, []testnode.Snapshot{
		{"link lo index 1 mtu 65536 up"},
		{"link hv index 2 kind veth mac 02:00:00:00:00:01 mtu 1500 up", "link lo index 1 mtu 65536 up", "rule4 512: from all to 10.88.0.2 lookup main"},
		{"link lo index 1 mtu 65536 up", "rule4 512: from all to 10.88.0.2 lookup main"},
	})
	want := `                                                      before     pod up  after DEL
     link hv kind veth up                                  -        yes          -
     rule4 512: from all to 10.88.0.2 lookup main          -        yes        yes
     (and 1 things of the node itself, there all the time)
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
