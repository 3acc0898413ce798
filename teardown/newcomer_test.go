package teardown

import (
	"reflect"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// A newcomer finds what a dead or late pod left only because it carries its
// address: claiming that would keep it in the node for the newcomer's whole life.
func TestNewcomer(t *testing.T) {
	stale, mine := rule("1536: from 10.0.0.2 lookup 100"), rule("1536: from 10.0.0.2 lookup 200")
	to := rule("512: to 10.0.0.2 lookup 254")
	a, b := veth("veth1", 12), veth("veth2", 22)
	aRt, bRt := route("10.0.0.2", a, 254), route("10.0.0.2", b, 254)
	reused := veth("veth3", 12)
	old := record("old", "10.0.0.2", own(a), own(to), own(stale), own(aRt))
	third := record("third", "10.0.0.2", own(mine))
	owed := record("owed", "10.0.0.2", own(a), own(stale), own(aRt))
	owed.State = attachment.Owed
	otherBoot := record("boot", "10.0.0.2", own(a), own(stale), own(aRt))
	otherBoot.Node.Now.BootID = "b0"
	superseded := own(stale)
	superseded.Superseded = true
	foundIt := record("new", "10.0.0.2", own(mine))
	foundIt.Found = []attachment.Resource{own(stale)}

	for name, c := range map[string]struct {
		others      []Other
		earlier     *attachment.Record
		result      string // prevResult
		has         []attachment.Resource
		keeps, lets []attachment.Resource
	}{
		"alone": {
			has:   []attachment.Resource{own(b), own(to), own(stale), own(bRt)},
			keeps: []attachment.Resource{own(b), own(to), own(stale), own(bRt)},
		},
		"a dead pod's rule beside its own": {
			others: []Other{dead(old)},
			has:    []attachment.Resource{own(b), own(to), own(stale), own(mine), own(bRt)},
			keeps:  []attachment.Resource{own(b), own(to), own(mine), own(bRt)},
			lets:   []attachment.Resource{own(stale)},
		},
		"the same for a late one": {
			others: []Other{live(old)},
			has:    []attachment.Resource{own(stale), own(mine)},
			keeps:  []attachment.Resource{own(mine)},
			lets:   []attachment.Resource{own(stale)},
		},
		"the other rule is of an earlier ADD of its own": { // so nothing says that the newer one did not make this one
			others:  []Other{dead(old)},
			earlier: record("new", "10.0.0.2", own(mine)),
			has:     []attachment.Resource{own(stale), own(mine)},
			keeps:   []attachment.Resource{own(stale), own(mine)},
		},
		"the primary used the rule that was there": { // "file exists" taken as success
			others: []Other{dead(old)},
			has:    []attachment.Resource{own(b), own(to), own(stale)},
			keeps:  []attachment.Resource{own(b), own(to), own(stale)},
		},
		// A pod of the AWS VPC CNI's first ENI has no rule from its address, and the dead pod was of another ENI.
		"its prevResult says that it uses the main table": {
			others: []Other{dead(old)},
			result: `{"interfaces":[{"name":"eth0","mac":"254","sandbox":"/n"}]}`,
			has:    []attachment.Resource{own(b), own(to), own(stale), own(bRt)},
			keeps:  []attachment.Resource{own(b), own(to), own(bRt)},
			lets:   []attachment.Resource{own(stale)},
		},
		"its prevResult says that it uses the rule that was there": {
			others: []Other{dead(old)},
			result: `{"interfaces":[{"name":"eth0","mac":"100","sandbox":"/n"}]}`,
			has:    []attachment.Resource{own(to), own(stale)},
			keeps:  []attachment.Resource{own(to), own(stale)},
		},
		"its prevResult decides between two that others hold": {
			others: []Other{dead(old), dead(third)},
			result: `{"interfaces":[{"name":"eth0","mac":"200","sandbox":"/n"}]}`,
			has:    []attachment.Resource{own(stale), own(mine)},
			keeps:  []attachment.Resource{own(mine)},
			lets:   []attachment.Resource{own(stale)},
		},
		"a table that is new and not the one that prevResult names": {
			others: []Other{dead(third)},
			result: `{"interfaces":[{"name":"eth0","mac":"200","sandbox":"/n"}]}`,
			has:    []attachment.Resource{own(stale), own(mine)},
			keeps:  []attachment.Resource{own(stale), own(mine)},
		},
		"what a clean one and one of another boot had is nobody's": {
			others: []Other{dead(owed), dead(otherBoot)},
			has:    []attachment.Resource{own(b), own(stale), own(mine), own(aRt)},
			keeps:  []attachment.Resource{own(b), own(stale), own(mine), own(aRt)},
		},
		"what it had by an earlier ADD is its own": {
			others: []Other{dead(old)},
			has:    []attachment.Resource{own(mine), superseded},
			keeps:  []attachment.Resource{own(mine), superseded},
		},
		"what an earlier ADD found, and it has the same of its own": {
			earlier: foundIt,
			others:  []Other{live(old)},
			has:     []attachment.Resource{own(mine), own(stale)},
			keeps:   []attachment.Resource{own(mine)},
			lets:    []attachment.Resource{own(stale)},
		},
		"what an earlier ADD found, and it has nothing else now": {
			earlier: foundIt,
			others:  []Other{live(old)},
			has:     []attachment.Resource{own(b), own(stale)},
			keeps:   []attachment.Resource{own(b), own(stale)},
		},
		"its own rule is of another priority": {
			others: []Other{dead(old)},
			has:    []attachment.Resource{own(stale), own(rule("1537: from 10.0.0.2 lookup 200"))},
			keeps:  []attachment.Resource{own(stale), own(rule("1537: from 10.0.0.2 lookup 200"))},
		},
		"both rules are held by others": {
			others: []Other{dead(old), dead(third)},
			has:    []attachment.Resource{own(stale), own(mine)},
			keeps:  []attachment.Resource{own(stale), own(mine)},
		},
		"a route over another's own link": {
			others: []Other{dead(old)},
			has:    []attachment.Resource{own(b), own(aRt), own(bRt)},
			keeps:  []attachment.Resource{own(b), own(bRt)},
			lets:   []attachment.Resource{own(aRt)},
		},
		"a route over a link that became its own": {
			others: []Other{dead(old)},
			has:    []attachment.Resource{own(reused), own(route("10.0.0.2", reused, 254))},
			keeps:  []attachment.Resource{own(reused), own(route("10.0.0.2", reused, 254))},
		},
		"a route over nobody's link": {
			others: []Other{dead(old)},
			has:    []attachment.Resource{own(route("10.0.0.2", attachment.Link{}, 254)), own(route("10.0.0.2", link("vlan", "vlan7", 7), 254))},
			keeps:  []attachment.Resource{own(route("10.0.0.2", attachment.Link{}, 254)), own(route("10.0.0.2", link("vlan", "vlan7", 7), 254))},
		},
		"what is shared is not claimed anyway": {
			others: []Other{dead(old)},
			has:    []attachment.Resource{shared(a), shared(aRt), shared(stale), own(mine)},
			keeps:  []attachment.Resource{shared(a), shared(aRt), shared(stale), own(mine)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := record("new", "10.0.0.2", c.has...)
			r.PrevResult = []byte(c.result)
			lets := Newcomer(r, c.earlier, c.others)
			if !reflect.DeepEqual(r.Resources, c.keeps) {
				t.Errorf("keeps %v\nwant  %v", r.Resources, c.keeps)
			}
			if !reflect.DeepEqual(lets, c.lets) {
				t.Errorf("lets go %v\nwant    %v", lets, c.lets)
			}
		})
	}
}
