package kernel_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
)

// TestListingWhileItChanges reads long listings while others change around what is looked for. A listing is complete or
// says that it was interrupted: what a dump silently lacks would be taken as gone, and leak. For rules and IPv6 routes the
// kernel itself does not say so. What is listed twice does no harm.
func TestListingWhileItChanges(t *testing.T) {
	const stay, passing = 800, 300
	for name, c := range map[string]struct {
		stays, comes func(i int) string // arguments of add and del
		read         func(h *kernel.Handle) (map[string]int, error)
	}{
		"rules": {
			stays: func(i int) string {
				return fmt.Sprintf("rule %%s pref %d from 10.0.0.5 fwmark %d lookup 100", 1000+i, i+1)
			},
			comes: func(i int) string { return fmt.Sprintf("rule %%s pref %d from 10.0.0.9 lookup 200", i+1) },
			read: func(h *kernel.Handle) (map[string]int, error) {
				rs, err := h.Rules(attachment.RuleFilter{IPs: ips("10.0.0.5")})
				return counted(rs, func(r attachment.Rule) string { return string(r.Raw) }), err
			},
		},
		"IPv4 routes": {
			stays: func(i int) string { return fmt.Sprintf("route %%s 10.1.%d.%d dev lo table 100", i/200, i%200) },
			comes: func(i int) string { return fmt.Sprintf("route %%s 10.0.%d.%d dev lo table 100", i/200, i%200) },
			read: func(h *kernel.Handle) (map[string]int, error) {
				rs, err := h.RoutesIn(100)
				return counted(rs, func(r attachment.Route) string { return r.Dst }), err
			},
		},
		"IPv6 routes": {
			stays: func(i int) string { return fmt.Sprintf("route %%s fd01:%x::7 dev lo table 100", i+1) },
			comes: func(i int) string { return fmt.Sprintf("route %%s fd00:%x::7 dev lo table 100", i+1) },
			read: func(h *kernel.Handle) (map[string]int, error) {
				rs, err := h.RoutesIn(100)
				return counted(rs, func(r attachment.Route) string { return r.Dst }), err
			},
		},
		"links": {
			stays: func(i int) string { return fmt.Sprintf("link %%s ifb%d type ifb", i) },
			comes: func(i int) string { return fmt.Sprintf("link %%s ifc%d type ifb", i) },
			read: func(h *kernel.Handle) (map[string]int, error) {
				ls, err := h.Links()
				return counted(ls, func(l attachment.Link) string { return l.Name }), err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := enterNode(t)
			h := n.handle()
			stay, passing := stay, passing
			if name == "links" {
				stay, passing = 60, 10 // they are larger, and take their time
			}
			var add strings.Builder
			for i := range stay {
				fmt.Fprintf(&add, c.stays(i)+"\n", "add")
			}
			n.ip(strings.TrimSuffix(add.String(), "\n"))
			want, err := c.read(h)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(want); got < stay {
				t.Fatalf("%d of %d at rest", got, stay)
			}

			var churn strings.Builder
			for i := range passing {
				fmt.Fprintf(&churn, c.comes(i)+"\n", "add")
			}
			for i := range passing { // those before what is looked for go while it is read
				fmt.Fprintf(&churn, c.comes(i)+"\n", "del")
			}
			complete, interrupted := 0, 0
			for range 4 {
				changes := n.start(churn.String())
				for running := true; running; {
					select {
					case err := <-changes:
						if err != nil {
							t.Fatal(err)
						}
						running = false
					default:
					}
					if lo, err := h.LinkByIndex(1); err != nil || lo == nil {
						t.Fatalf("after a listing that was disturbed nothing can be asked: %v, %v", lo, err)
					}
					got, err := c.read(h)
					if errors.Is(err, kernel.ErrInterrupted) {
						interrupted++
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					complete++
					for x := range want {
						if got[x] == 0 {
							t.Fatalf("%q is missing in a listing that calls itself complete", x)
						}
					}
				}
			}
			if complete == 0 {
				t.Error("no listing was complete")
			}
			t.Logf("%d complete, %d interrupted", complete, interrupted)
		})
	}
}

func counted[T any](all []T, name func(T) string) map[string]int {
	m := map[string]int{}
	for _, x := range all {
		m[name(x)]++
	}
	return m
}
