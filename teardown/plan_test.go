package teardown

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scene is a record that is to be torn down, the node as it is by then, and the
// other records that have something in common with it.
type scene struct {
	rec    *attachment.Record
	node   *node
	others []Other
}

func (s scene) plan() Plan { return Build(s.rec, here, Observe(s.node, s.rec), s.others) }

// String puts what the plan was made from above the plan.
func (s scene) String() string {
	var b strings.Builder
	b.WriteString("on the node:\n")
	for _, x := range s.node.list() {
		fmt.Fprintf(&b, "  %s\n", x)
	}
	for _, o := range s.others {
		fmt.Fprintf(&b, "%s is %s and has:\n", o.Record.Key, o.Life)
		for _, x := range o.Record.Resources {
			fmt.Fprintf(&b, "  %s (%s)\n", x, x.Share)
		}
	}
	fmt.Fprintf(&b, "\nplan for %s", s.plan())
	return b.String()
}

// Each plan stands in testdata/<name>.golden, below the situation it was made for.
func TestPlans(t *testing.T) {
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".golden")
			got := s.String()
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestEveryGoldenFileHasAScene(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	all := scenes()
	for _, f := range files {
		if _, ok := all[strings.TrimSuffix(filepath.Base(f), ".golden")]; !ok {
			t.Errorf("%s: no scene has this name", f)
		}
	}
}

// Only a claimant that no record names may be gone, or recorded, a moment later.
func TestUnsettledIsWhatTheKernelAloneClaims(t *testing.T) {
	all := scenes()
	for name, want := range map[string]bool{
		"kernel-claims": true, "kernel-claims-by-name": true,
		"claimed-by-live": false, "claimed-by-unknown": false, "kernel-claim-cannot-be-asked": false, "kernel-claim-by-a-name-fails": false,
		"neighbours-rule-is-first": false, "own-and-shared": false, "index-reused": false, "never-deleted": false, "unreadable": false, "other-boot": false,
	} {
		if got := all[name].plan().Unsettled(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestPlanCount(t *testing.T) {
	p := Plan{Steps: []Step{{Verdict: Delete}, {Verdict: Gone}, {Verdict: Delete}, {Verdict: Unknown}}}
	for want, vs := range map[int][]Verdict{0: {Kept}, 1: {Gone}, 2: {Delete}, 3: {Delete, Unknown}} {
		if got := p.Count(vs...); got != want {
			t.Errorf("%v: %d, want %d", vs, got, want)
		}
	}
}

// Each dump of the rules has all pods' in it.
func TestObserveReadsTheRulesOnce(t *testing.T) {
	n := whole()
	Observe(n, pod())
	if n.dumps != 1 {
		t.Errorf("%d dumps", n.dumps)
	}
}

// Routes over a link are asked for by the link, others by their table.
func TestObserveReadsRoutesWhereTheyAre(t *testing.T) {
	blackhole := route("10.0.0.2", attachment.Link{}, 100)
	r := record("c1", "10.0.0.2", own(c1Rt), own(blackhole))
	n := &node{routes: []attachment.Route{c1Rt, blackhole}}
	for fails, unread := range map[string]int{"routes over": 0, "routes in": 1} {
		n.fails = map[string]error{fails: errKernel}
		for i, seen := range Observe(n, r).Resources {
			if i == unread && seen.Err == nil || i != unread && (seen.Err != nil || seen.Count != 1) {
				t.Errorf("%s fail: %s is seen as %+v", fails, r.Resources[i], seen)
			}
		}
	}
}

func TestFilterSelectsAllThatCanBeTheRecords(t *testing.T) {
	oif := rule("7: lookup 5")
	oif.OifName = "eth7"
	r := record("c1", "10.0.0.2", own(c1), shared(link("bridge", "cni0", 4)), own(rule("10: iif vlan7 lookup 101")), own(oif),
		own(rule("1536: from 10.0.0.7 lookup 100")), own(rule("11: iif vlan7 lookup 101")))
	f := Filter(r)
	if got, want := f.Names, []string{"veth1", "vlan7", "eth7"}; !reflect.DeepEqual(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	if len(f.IPs) != 2 || f.IPs[0].String() != "10.0.0.2" || f.IPs[1].String() != "10.0.0.7" {
		t.Errorf("addresses %v", f.IPs)
	}
}

// A pod of another node has the address by now, and the way there is a static or a BGP route: nobody here claims the
// rules of the one that is gone.
func TestARouteByWayOfAGatewayClaimsNothing(t *testing.T) {
	for gateway, want := range map[string]int{"192.168.0.7": 0, "": 2} {
		n := whole()
		away := route("10.0.0.2", link("", "eth1", 99), 254)
		away.Gateway = gateway
		n.routes = []attachment.Route{away}
		s := scene{rec: pod(), node: n}
		if got := s.plan().Count(Claimed); got != want {
			t.Errorf("by way of %q: %d claimed, want %d\n%s", gateway, got, want, s.plan())
		}
	}
}
