package damage

import (
	"regexp"
	"testing"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// with runs a program as root with these capabilities and no others.
func with(caps string) []string {
	return []string{"setpriv", "--bounding-set=-all" + caps, "--inh-caps=-all"}
}

const both, onlyNet, onlySys = ",+net_admin,+sys_admin", ",+net_admin", ",+sys_admin"

// TestCapabilities is the table of docs/threats.md: what both programs can do as root with two capabilities, and what
// they say without one of them.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	testnode.Run(t, func(t *testing.T) {
		empty := kernel(t)
		under := func(t *testing.T, caps string, p pod, verb string) said {
			t.Helper()
			return p.cniUnder(t, with(caps), verb, `,"grace":"0s"`)
		}
		sweep := func(t *testing.T, caps string) said {
			t.Helper()
			args := append(with(caps), "backstopctl", "sweep", "--yes")
			start(t, "", nil, args...) // the first one sees that it is dead
			return start(t, "", nil, args...)
		}

		t.Run("both", func(t *testing.T) {
			older.dress(t)
			for _, verb := range []string{"ADD", "CHECK", "DEL"} {
				if s := under(t, both, older, verb); s.Code != 0 || s.Stderr != "" {
					t.Errorf("%s: %s%s", verb, s.Stdout, s.Stderr)
				}
			}
			older.netnsGone(t)
			if k := kernel(t); k != empty {
				t.Errorf("after DEL the node has\n%s", k)
			}
			newer.dress(t)
			under(t, both, newer, "ADD")
			newer.netnsGone(t)
			if s := sweep(t, both); s.Code != 0 || kernel(t) != empty {
				t.Errorf("after sweep (%s%s) the node has\n%s", s.Stdout, s.Stderr, kernel(t))
			}
		})
		for name, c := range map[string]struct{ caps, add, del, sweep string }{
			"without sys_admin": {onlyNet, "enter /run/netns/p: operation not permitted", "", ""},
			"without net_admin": {onlySys, "", "delete rule 1536: from 10.9.9.9 lookup 100: .*not permitted", "CAP_NET_ADMIN"},
			"without any":       {"", "enter /run/netns/p: operation not permitted", "", "CAP_NET_ADMIN"},
		} {
			t.Run(name, func(t *testing.T) {
				older.dress(t)
				for _, call := range []struct{ verb, want string }{{"ADD", c.add}, {"CHECK", ""}, {"DEL", c.del}} {
					if s := under(t, c.caps, older, call.verb); s.Code != 0 || !says(s.Stderr, call.want) {
						t.Errorf("%s: exit code %d, want %q: %s%s", call.verb, s.Code, call.want, s.Stdout, s.Stderr)
					}
				}
				older.netnsGone(t)
				if s := sweep(t, c.caps); !says(s.Stderr, c.sweep) {
					t.Errorf("sweep: exit code %d, want %q: %s%s", s.Code, c.sweep, s.Stdout, s.Stderr)
				}
				sweep(t, both) // who has them all ends it
				if k := kernel(t); k != empty {
					t.Errorf("the node has\n%s", k)
				}
				older.remove()
				sh(t, "rm -rf "+dir)
			})
		}
	})
}

// says reports whether a text has what is wanted, or is empty where nothing is.
func says(text, want string) bool {
	if want == "" {
		return text == ""
	}
	return regexp.MustCompile(want).MatchString(text)
}

// netnsGone is what a runtime does after DEL.
func (p pod) netnsGone(t *testing.T) {
	t.Helper()
	if err := testnode.RemovePod(p.id); err != nil {
		t.Fatal(err)
	}
}
