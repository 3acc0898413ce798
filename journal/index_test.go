package journal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

var indexes = [][]byte{bucketByIP, bucketByLink, bucketDue}

// rebuilt fails unless the indexes are what the records alone would give: no
// entry is left of what a record was before.
func rebuilt(t *testing.T, j *Journal, when string) {
	t.Helper()
	var all []*attachment.Record
	view(t, j, func(tx *Tx) error {
		return tx.Each(func(r *attachment.Record) error { all = append(all, r); return nil })
	})
	anew := newJournal(t)
	put(t, anew, all...)
	got, want := contents(t, j, indexes...), contents(t, anew, indexes...)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %q\nwant %q", when, got, want)
	}
}

func TestIndexesFollowEveryChange(t *testing.T) {
	j := newJournal(t)
	ip := netip.MustParseAddr
	neighbour := rec("c2", "10.0.0.2", "veth2", 13) // shares the address all the time
	put(t, j, neighbour)
	r := rec("c1", "10.0.0.2", "veth1", 12)
	for _, step := range []struct {
		what   string
		change func()
	}{
		{"put", func() {}},
		{"put again", func() {}},
		{"an address more", func() { r.IPs = append(r.IPs, ip("fd00::2")) }},
		{"other addresses", func() { r.IPs = []netip.Addr{ip("10.0.0.3")} }},
		{"a rule for a former address", func() {
			r.Resources = append(r.Resources, attachment.Resource{Kind: attachment.KindRule, Share: attachment.Own,
				Rule: &attachment.Rule{Family: 2, Src: "10.0.0.2", Raw: []byte("rule")}})
		}},
		{"a rule for a name without a link", func() {
			r.Resources = append(r.Resources, attachment.Resource{Kind: attachment.KindRule, Share: attachment.Own,
				Rule: &attachment.Rule{Family: 2, IifName: "vlan7", Raw: []byte("by name")}})
		}},
		{"another link", func() { r.Resources[0] = ownLink("veth1", 22) }},
		{"the link is shared after all", func() { r.Resources[0].Share = attachment.Shared }},
		{"a link with the name of a neighbour's", func() { r.Resources[0] = ownLink("veth2", 30) }},
		{"deferred", func() { r.State = attachment.Deferred }},
		{"due later", func() { r.Due = at(9999) }},
		{"no address, no link", func() { r.IPs, r.Resources = nil, nil }},
	} {
		step.change()
		put(t, j, r)
		rebuilt(t, j, step.what)
	}
	r.State = attachment.Closed
	put(t, j, r)
	rebuilt(t, j, "closed")
	view(t, j, func(tx *Tx) error {
		want(t, "by container after closing", []string{})(ids(tx.ByContainer("c1", "eth0")))
		return nil
	})
}

func TestIndexesFollowRandomChanges(t *testing.T) {
	j := newJournal(t)
	const seed = 42
	rnd := rand.New(rand.NewPCG(seed, seed))
	states := []attachment.State{attachment.Attached, attachment.Deferred, attachment.Tearing, attachment.Owed, attachment.Closed}
	for round := range 10 {
		update(t, j, func(tx *Tx) error {
			for range 40 {
				r := rec(fmt.Sprintf("c%d", rnd.IntN(12)), fmt.Sprintf("10.0.0.%d", rnd.IntN(8)), fmt.Sprintf("veth%d", rnd.IntN(4)), rnd.IntN(6))
				r.Due, r.State = at(rnd.IntN(50)), states[rnd.IntN(len(states))]
				if err := tx.Put(r); err != nil {
					return err
				}
			}
			return nil
		})
		rebuilt(t, j, fmt.Sprintf("seed %d, round %d", seed, round))
	}
}

func TestByIPCarriesTheClaim(t *testing.T) {
	j := newJournal(t)
	a, b, c := rec("c1", "10.0.0.1", "veth1", 12), rec("c2", "10.0.0.1", "veth2", 13), rec("c3", "10.0.0.10", "veth3", 14)
	put(t, j, a, b, c, rec("c4", "10.0.0.1", "veth4", 15))
	b.State, b.NetnsID = attachment.Deferred, attachment.NamespaceID{Dev: 4, Ino: 77}
	d := rec("c4", "10.0.0.1", "veth4", 15)
	d.State = attachment.Closed
	put(t, j, b, d)
	view(t, j, func(tx *Tx) error {
		want(t, "10.0.0.1", []attachment.Claim{a.Claim(), b.Claim()})(tx.ByIP(netip.MustParseAddr("10.0.0.1")))
		want(t, "10.0.0.10", []attachment.Claim{c.Claim()})(tx.ByIP(netip.MustParseAddr("10.0.0.10")))
		want(t, "an address of nobody", []attachment.Claim{})(tx.ByIP(netip.MustParseAddr("10.0.0.100")))
		return nil
	})
}

// Values would be pages that every commit pays for.
func TestOnlyByIPHasValues(t *testing.T) {
	j := newJournal(t)
	put(t, j, rec("c1", "10.0.0.1", "veth1", 12))
	for bucket, entries := range contents(t, j, indexes...) {
		if len(entries) != 1 {
			t.Errorf("%s has %d entries, want 1", bucket, len(entries))
		}
		for k, v := range entries {
			if (v != "") != (bucket == string(bucketByIP)) {
				t.Errorf("%s: %q has the value %q", bucket, k, v)
			}
		}
	}
}

func TestByLinkName(t *testing.T) {
	j := newJournal(t)
	bare := rec("c9", "10.0.0.9", "veth9", 19)
	bare.Resources = append(bare.Resources, attachment.Resource{Kind: attachment.KindRule, Share: attachment.Own,
		Rule: &attachment.Rule{Family: 2, IifName: "vlan7", OifName: "veth9", Raw: []byte("by name")}})
	put(t, j, bare,
		rec("c1", "10.0.0.1", "veth", 7), rec("c2", "10.0.0.2", "veth", 8), rec("c3", "10.0.0.3", "veth", 9),
		rec("c4", "10.0.0.4", "veth1", 8), rec("c5", "10.0.0.5", "vet", 8), rec("c6", "10.0.0.6", "veth", 8),
		rec("c7", "10.0.0.7", "veth", 256+8), rec("c8", "10.0.0.8", "veth", math.MaxInt32))
	view(t, j, func(tx *Tx) error {
		for _, c := range []struct {
			name         string
			index        int
			same, others []string
		}{
			{"veth", 8, []string{"c2", "c6"}, []string{"c1", "c3", "c7", "c8"}},
			{"veth", 7, []string{"c1"}, []string{"c2", "c6", "c3", "c7", "c8"}},
			{"veth", math.MaxInt32, []string{"c8"}, []string{"c1", "c2", "c6", "c3", "c7"}},
			{"veth", 1, []string{}, []string{"c1", "c2", "c6", "c3", "c7", "c8"}},
			{"vet", 8, []string{"c5"}, []string{}},
			{"veth1", 9, []string{}, []string{"c4"}},
			{"ve", 8, []string{}, []string{}},
			{"vlan7", 7, []string{}, []string{"c9"}}, // by its rule alone
			{"veth9", 19, []string{"c9"}, []string{}},
		} {
			what := fmt.Sprintf("%s, index %d", c.name, c.index)
			want(t, "the device "+what, c.same)(ids(tx.ByLink(c.name, c.index)))
			want(t, "others than "+what, c.others)(ids(tx.ByLinkName(c.name, c.index)))
		}
		return nil
	})
}

// containerd sends DEL under the name that the network has by now.
func TestByContainerFindsItInWhateverNetwork(t *testing.T) {
	j := newJournal(t)
	second := rec("c1", "10.0.0.2", "veth2", 13)
	second.IfName = "eth01"
	put(t, j, second, rec("c10", "10.0.0.3", "veth3", 14))
	var named []attachment.Key
	for _, network := range []string{"net-b", "net.c", "net0", "neta", "z"} { // in the order of their keys
		r := rec("c1", "10.0.0.1", "veth1", 12)
		r.Network = network
		put(t, j, r)
		named = append(named, r.Key)
	}
	view(t, j, func(tx *Tx) error {
		want(t, "c1 eth0", named)(tx.ByContainer("c1", "eth0"))
		want(t, "c1 eth01", []attachment.Key{second.Key})(tx.ByContainer("c1", "eth01"))
		want(t, "c1 eth", []attachment.Key{})(tx.ByContainer("c1", "eth"))
		return nil
	})
}

func TestAfterIsTheFirstKeyBehindAPrefix(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "a\xff": "b", "a\x00\xff\xff": "a\x01", "\xff": "\xff\xff"} {
		if got := string(after([]byte(prefix))); got != want {
			t.Errorf("after %q: %q, want %q", prefix, got, want)
		}
	}
}
