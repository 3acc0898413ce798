package netfilter

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/testnode"
)

const longID = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"

var (
	dead = attachment.Key{Network: "some-longer-network", ContainerID: longID, IfName: "eth0"}
	live = attachment.Key{Network: "some-longer-network", ContainerID: "f" + longID[1:], IfName: "eth0"}
)

// in runs a test in a node of its own, connected to its nftables.
func in(t *testing.T, body func(t *testing.T, c *Conn)) {
	t.Helper()
	for _, program := range []string{"nft", "iptables", "ip6tables", "sha512sum"} {
		if err := testnode.NeedProgram(program, program); err != nil {
			t.Fatal(err)
		}
	}
	testnode.Run(t, func(t *testing.T) {
		runtime.LockOSThread()
		c, err := Open()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		body(t, c)
	})
}

func sh(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("sh", args...).CombinedOutput(); err != nil {
		t.Fatalf("sh %q: %v: %s", args, err, out)
	}
}

// script runs a text, after what a plugin's rules are named by: h TEXT LENGTH.
func script(t *testing.T, text string, args ...string) {
	t.Helper()
	sh(t, append([]string{"-ec", `h() { printf %s "$1" | sha512sum | cut -c1-"$2"; }` + "\n" + text, "sh"}, args...)...)
}

func plugins(t *testing.T, k attachment.Key, last, port string) {
	t.Helper()
	sh(t, "testdata/make.sh", k.Network, k.ContainerID, k.IfName, "10.9.0."+last, "fd09::"+last, port)
}

func look(t *testing.T) testnode.Snapshot {
	t.Helper()
	s, err := testnode.View{Netfilter: true}.Take()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func same(t *testing.T, want testnode.Snapshot) {
	t.Helper()
	if diff := testnode.Diff(want, look(t)); diff != "" {
		t.Errorf("the node differs:\n%s", diff)
	}
}

func find(t *testing.T, c *Conn, keys ...attachment.Key) []Piece {
	t.Helper()
	s, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	return s.Find(keys)
}

// What looks as if it were the dead container's and is not.
const bystanders = `
c=CNI-$(h "$1$2" 24)
name="name: \"$1\" id: \"$2\""
iptables -t nat -N ${c%?}
iptables -t nat -A ${c%?} -d 10.9.0.0/24 -j ACCEPT -m comment --comment "$name"
iptables -t nat -A POSTROUTING -s 10.9.0.9 -j ${c%?} -m comment --comment "$name"
iptables -t nat -A POSTROUTING -s 10.9.0.9 -j ACCEPT -m comment --comment "$name"
iptables -t nat -N CNI-DN-mine
iptables -t nat -N CNI-HOSTPORT-DNAT
iptables -t nat -A CNI-HOSTPORT-DNAT -j CNI-DN-mine -m comment --comment "dnat $name"
iptables -t filter -N $c
iptables -t filter -A FORWARD -j $c -m comment --comment "$name"
nft -f - <<N
add table ip mine
add chain ip mine $c
add rule ip mine $c accept comment "$2"
add table inet cni_plugins_masquerade
add chain inet cni_plugins_masquerade masq_checks
add rule inet cni_plugins_masquerade masq_checks ip saddr 10.9.0.9 masquerade comment "$(h "$1" 16)-$(h "eth1:$2" 16), net: $1"
add table ip cni_hostport
add chain ip cni_hostport hostports
add rule ip cni_hostport hostports tcp dport 9 dnat to 10.9.0.9:80 comment "${2}0"
N`

func TestRemovesWhatIsTheContainersAndNothingElse(t *testing.T) {
	in(t, func(t *testing.T, c *Conn) {
		script(t, bystanders, dead.Network, dead.ContainerID)
		plugins(t, live, "2", "82")
		before := look(t)
		plugins(t, dead, "3", "83")

		found := find(t, c, live, dead)
		mine := slices.DeleteFunc(slices.Clone(found), func(p Piece) bool { return p.Key != dead })
		// In both families a rule and a chain of each of ipMasq, portmap and egress-cni; four rules of portmap's and two of
		// masquerading's nftables forms; macspoofchk's rule and two chains.
		if len(mine) != 2*3*2+4+2+3 || len(found) != 2*len(mine) {
			t.Errorf("found %d pieces of %d:\n%v", len(mine), len(found), found)
		}
		removed, err := c.Remove(mine)
		if err != nil || len(removed) != len(mine) {
			t.Errorf("removed %d of %d: %v", len(removed), len(mine), err)
		}
		same(t, before)
		if again := find(t, c, dead); len(again) != 0 {
			t.Errorf("found again: %v", again)
		}
		if removed, err := c.Remove(mine); err != nil || len(removed) != 0 {
			t.Errorf("removed again %v: %v", removed, err)
		}
	})
}

func TestTellsWhoseAndWhatAddresses(t *testing.T) {
	in(t, func(t *testing.T, c *Conn) {
		plugins(t, dead, "3", "83")
		own := []netip.Addr{netip.MustParseAddr("10.9.0.3"), netip.MustParseAddr("fd09::3")}
		for _, p := range find(t, c, dead) {
			want := Owner{dead.Network, dead.ContainerID}
			if p.Table == "cni_hostport" || p.Family == "bridge" {
				want.Network = ""
			}
			if !slices.Equal(p.Owners, []Owner{want}) {
				t.Errorf("%s is of %v, want %v", p, p.Owners, want)
			}
			egress := strings.Contains(p.Chain+p.Jump, "CNI-E")
			for _, a := range p.Addresses {
				if !slices.Contains(own, a) || egress {
					t.Errorf("%s has the address %s", p, a)
				}
			}
			if p.Family != "bridge" && len(p.Addresses) == 0 && !egress {
				t.Errorf("%s has no address", p)
			}
			if egress && (len(p.Elsewhere) == 0 || slices.Contains(own, p.Elsewhere[0])) {
				t.Errorf("%s has addresses %v", p, p.Elsewhere)
			}
		}
	})
}

// Two containers may have one chain: the hash is of both names without anything in between.
func TestAChainOfTwoContainersStays(t *testing.T) {
	in(t, func(t *testing.T, c *Conn) {
		one, two := attachment.Key{Network: "a", ContainerID: "bc", IfName: "eth0"}, attachment.Key{Network: "ab", ContainerID: "c", IfName: "eth0"}
		script(t, `for i in "a bc 3" "ab c 4"; do set -- $i; c=CNI-$(h "$1$2" 24); name="name: \"$1\" id: \"$2\""
iptables -t nat -N $c 2>/dev/null || true
iptables -t nat -A $c -j MASQUERADE -m comment --comment "$name"
iptables -t nat -A POSTROUTING -s 10.9.0.$3 -j $c -m comment --comment "$name"; done`)
		found := find(t, c, one)
		if _, err := c.Remove(found); err != nil {
			t.Error(err)
		}
		after := look(t)
		for _, want := range []string{`-s 10.9.0.4/32 -m comment --comment "name: \"ab\" id: \"c\"" -j CNI-`, `-A CNI-` + hash("abc")[:24] + ` -m comment --comment "name: \"ab\" id: \"c\"" -j MASQUERADE`} {
			if !strings.Contains(after.String(), want) {
				t.Errorf("%s went:\n%s", want, after)
			}
		}
		if strings.Contains(after.String(), "10.9.0.3") {
			t.Errorf("the rule of the dead one is there:\n%s", after)
		}
		// Emptied and without any rule that leads to it, nothing tells whose it is.
		script(t, `c=CNI-$(h abc 24); iptables -t nat -F POSTROUTING; iptables -t nat -F $c`)
		found = find(t, c, one, two)
		if len(found) != 1 || !slices.Equal(found[0].Owners, []Owner{{"a", "bc"}, {"ab", "c"}}) {
			t.Errorf("found %+v", found)
		}
	})
}

// What else leads to a chain, or is in it, keeps it.
func TestAChainThatServesOthersStays(t *testing.T) {
	for name, other := range map[string]string{
		"a rule leads to it":             `iptables -t nat -A PREROUTING -j $c`,
		"a rule without a comment":       `iptables -t nat -A POSTROUTING -s 10.0.0.0/8 -j $c`,
		"a rule of another's is in it":   `iptables -t nat -A $c -j RETURN -m comment --comment "name: \"n\" id: \"other\""`,
		"a verdict map leads to it":      `nft add map ip nat ports '{ type inet_service : verdict ; }'; nft add element ip nat ports "{ 80 : jump $c }"; nft add chain ip nat mine; nft add rule ip nat mine tcp dport vmap @ports`,
		"a map without a name does":      `nft add chain ip nat mine; nft add rule ip nat mine tcp dport vmap "{ 80 : jump $c, 81 : accept }"`,
		"a rule with its comment does":   `iptables -t nat -A PREROUTING -j $c -m comment --comment "name: \"n\" id: \"c\""`,
		"another chain goes on to it":    `iptables -t nat -N mine; iptables -t nat -A mine -g $c`,
		"a comment of nft's is in there": `nft add rule ip nat $c accept comment "of-mine"`,
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			in(t, func(t *testing.T, c *Conn) {
				k := attachment.Key{Network: "n", ContainerID: "c", IfName: "eth0"}
				chain := `c=CNI-$(h nc 24); `
				script(t, chain+`iptables -t nat -A POSTROUTING -s 10.7.7.7 -j ACCEPT; iptables -t nat -N $c; iptables -t nat -A $c -j RETURN -m comment --comment "name: \"n\" id: \"c\""; `+other)
				before := look(t)
				script(t, chain+`iptables -t nat -A POSTROUTING -s 10.9.0.3 -j $c -m comment --comment "name: \"n\" id: \"c\""`)
				found := find(t, c, k)
				if len(found) != 2 || found[1].Handle != 0 || found[1].Serves == "" {
					t.Errorf("found %+v", found)
				}
				if removed, err := c.Remove(found); err != nil || len(removed) != 1 {
					t.Errorf("removed %v: %v", removed, err)
				}
				same(t, before)
			})
		})
	}
}

// A plugin's own DEL may be at the same time at the same rules.
func TestAPluginsDelInBetween(t *testing.T) {
	for name, took := range map[string]string{
		"the rule": `iptables -t nat -D POSTROUTING -s 10.9.0.3 -j $c -m comment --comment "$name"`,
		"all of it": `iptables -t nat -D POSTROUTING -s 10.9.0.3 -j $c -m comment --comment "$name"
iptables -t nat -F $c; iptables -t nat -X $c`,
		"what is in the chain": `iptables -t nat -F $c`,
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			in(t, func(t *testing.T, c *Conn) {
				plugins(t, live, "2", "82")
				before := look(t)
				plugins(t, dead, "3", "83")
				found := find(t, c, dead)
				script(t, `c=CNI-$(h "$1$2" 24); name="name: \"$1\" id: \"$2\""; `+took, dead.Network, dead.ContainerID)
				if _, err := c.Remove(found); err != nil {
					t.Error(err)
				}
				same(t, before)
			})
		})
	}
}

// A change is made as a whole or not at all, and the next one does not see its answers.
func TestABatchThatFailsChangesNothing(t *testing.T) {
	in(t, func(t *testing.T, c *Conn) {
		plugins(t, dead, "3", "83")
		before := look(t)
		found := find(t, c, dead)
		gone := slices.Clone(found)
		gone[len(gone)/2].Chain += "-no"
		if err := c.delete(gone); err == nil {
			t.Error("the removal of what is not there succeeded")
		}
		same(t, before)
		if removed, err := c.Remove(found); err != nil || len(removed) != len(found) {
			t.Errorf("removed %d of %d: %v", len(removed), len(found), err)
		}
	})
}

// A container may have a thousand ports: so many answers the kernel gives before one is read.
func TestManyPortsGoAtOnce(t *testing.T) {
	in(t, func(t *testing.T, c *Conn) {
		script(t, `nft add table ip cni_hostport; nft add chain ip cni_hostport hostports`)
		before := look(t)
		script(t, `for p in $(seq 1000); do echo add rule ip cni_hostport hostports tcp dport $p dnat to 10.9.0.3:80 comment \"$1\"; done | nft -f -`, dead.ContainerID)
		if removed, err := c.Remove(find(t, c, dead)); err != nil || len(removed) != 1000 {
			t.Errorf("removed %d: %v", len(removed), err)
		}
		same(t, before)
	})
}

// The removals of several containers are one change, unless somebody is at the same pieces.
func TestSeveralContainersAtOnce(t *testing.T) {
	in(t, func(t *testing.T, c *Conn) {
		third := attachment.Key{Network: "n", ContainerID: "third", IfName: "eth0"}
		plugins(t, live, "2", "82")
		before := look(t)
		for _, taken := range []bool{false, true} {
			plugins(t, dead, "3", "83")
			plugins(t, third, "4", "84")
			one, other := find(t, c, dead), find(t, c, third)
			if taken {
				script(t, `iptables -t nat -D POSTROUTING -s 169.254.172.84 -j CNI-E4-$(h nthird 21) -m comment --comment 'name: "n" id: "third"'`)
			}
			removed, err := c.Remove(one, other)
			if want := len(one) + len(other) - map[bool]int{true: 1}[taken]; err != nil || len(removed) != want {
				t.Errorf("removed %d of %d: %v", len(removed), want, err)
			}
			same(t, before)
		}
	})
}

func TestNothingIsThere(t *testing.T) {
	in(t, func(t *testing.T, c *Conn) {
		if found := find(t, c, dead); len(found) != 0 {
			t.Errorf("found %v", found)
		}
	})
}

func TestLegacyIsSaidToBeThere(t *testing.T) {
	in(t, func(t *testing.T, _ *Conn) {
		sh(t, "-c", "iptables -t nat -A POSTROUTING -j ACCEPT")
		if said, err := Legacy(); said != "" || err != nil {
			t.Errorf("with iptables-nft alone: %q, %v", said, err)
		}
		sh(t, "-c", "iptables-legacy -t nat -A POSTROUTING -j ACCEPT")
		if said, err := Legacy(); !strings.Contains(said, "iptables-legacy-save -t nat") || strings.Contains(said, "ip6tables") || err != nil {
			t.Errorf("with a legacy table: %q, %v", said, err)
		}
	})
}

func TestCommentsThatAreNone(t *testing.T) {
	for _, b := range [][]byte{nil, {0}, {0, 5, 'a'}, {7, 200, 1}, {1, 1, 1}} {
		if got := nftComment(b); got != "" {
			t.Errorf("%v: %q", b, got)
		}
	}
	if got := nftComment([]byte{2, 1, 9, 0, 3, 'a', 'b', 0}); got != "ab" {
		t.Errorf("got %q", got)
	}
}

func TestMain(m *testing.M) {
	if err := errors.Join(testnode.NeedProgram("iptables-legacy", "iptables")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
