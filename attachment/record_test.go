package attachment

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestNoteKeepsTheFirstAndTheLatestLines(t *testing.T) {
	var r Record
	for i := range 100 {
		r.Note(Moment{Wall: time.Unix(int64(i), 0)}, "line %d", i)
	}
	if len(r.Events) != maxEvents {
		t.Fatalf("%d lines, want %d", len(r.Events), maxEvents)
	}
	for i, e := range r.Events {
		n := 100 - maxEvents + i
		if i == 0 {
			n = 0 // the ADD
		}
		if e.What != fmt.Sprintf("line %d", n) || e.At.Unix() != int64(n) {
			t.Errorf("line %d is %q of second %d, want number %d", i, e.What, e.At.Unix(), n)
		}
	}
}

func fullRecord() *Record {
	return &Record{
		Version: 1, Key: Key{"net", "c1", "eth0"}, State: Attached, Node: node("b1"), Netns: "/run/netns/p", NetnsID: pod,
		IPs:        []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")},
		PrevResult: json.RawMessage(`{"cniVersion":"1.0.0","zzz":[1,null]}`),
		Resources: []Resource{
			{Kind: KindLink, Share: Own, Link: &veth},
			{Kind: KindRule, Share: Own, Rule: &Rule{Family: 2, Priority: 512, Dst: "10.0.0.2", Table: 254, Raw: []byte{0, 255, 7}}},
		},
		Pod:      []Resource{{Kind: KindAddress, Share: Own, Address: &Address{Dev: "eth0", CIDR: "10.0.0.2/32"}}},
		Settings: Settings{Teardown: "unreachable", Grace: 2 * time.Minute, EscalateAfter: 3},
		Del:      &Del{Count: 2, Refused: true},
		Due:      Moment{BootID: "b1", BootTime: time.Hour, Wall: time.Unix(9, 0).UTC()},
	}
}

func TestDecodeGivesWhatWasEncoded(t *testing.T) {
	want := fullRecord()
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// What could lead a teardown astray is refused as a whole.
func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Record)
		want   string // in the error; empty when it is accepted
	}{
		"as it is":                     {func(*Record) {}, ""},
		"older version":                {func(r *Record) { r.Version = 0 }, ""},
		"newer version":                {func(r *Record) { r.Version = RecordVersion + 1 }, "upgrade"},
		"no key":                       {func(r *Record) { r.Key = Key{} }, "network name"},
		"key that is a path":           {func(r *Record) { r.ContainerID = "../c1" }, "container id"},
		"content of another kind":      {func(r *Record) { r.Resources[0].Kind = KindRule }, `kind "rule"`},
		"content of two kinds":         {func(r *Record) { r.Resources[1].Link = &veth }, "2 kinds"},
		"kind of a newer version":      {func(r *Record) { r.Resources[0].Kind = "netfilter" }, `kind "netfilter"`},
		"share that is none":           {func(r *Record) { r.Resources[0].Share = "" }, "share"},
		"the pod's side does not hold": {func(r *Record) { r.Pod[0].Address = nil }, `kind "address"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := fullRecord()
			c.change(r)
			b, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			switch got, err := Decode(b); {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || got != nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v and %v, want no record and an error with %q", got, err, c.want)
			}
		})
	}
	for _, s := range []string{"", "null", "[]", "{", `{"network":7}`, `{"network":"n","containerID":"c","ifName":"e","ips":["pod"]}`} {
		if r, err := Decode([]byte(s)); err == nil {
			t.Errorf("%q was read as %+v", s, r)
		}
	}
}

func TestOwnLinksOfRecord(t *testing.T) {
	r := fullRecord()
	r.Resources = append(r.Resources,
		Resource{Kind: KindLink, Share: Shared, Link: &Link{Index: 4, Name: "cni0", Kind: "bridge"}},
		Resource{Kind: KindLink, Share: Own, Superseded: true, Link: &ifb})
	if got, want := r.OwnLinks(), []Link{veth, ifb}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for index, want := range map[int]bool{12: true, 13: true, 4: false, 0: false} {
		if r.OwnLink(index) != want {
			t.Errorf("own link %d: want %v", index, want)
		}
	}
}

// A superseded ADD may have had other addresses: its rules are still for them.
func TestAddressesIncludeThoseOfOwnRules(t *testing.T) {
	r := fullRecord()
	rule := func(s Share, src, dst string) Resource {
		return Resource{Kind: KindRule, Share: s, Rule: &Rule{Src: src, Dst: dst}}
	}
	r.Resources = append(r.Resources, rule(Own, "10.0.0.7", "fd00::7"), rule(Own, "10.0.0.7", ""), rule(Own, "10.9.0.0/16", ""), rule(Shared, "10.0.0.8", ""))
	var got []string
	for _, a := range r.Addresses() {
		got = append(got, a.String())
	}
	if want := "10.0.0.2 fd00::2 10.0.0.7 fd00::7"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if len(r.IPs) != 2 {
		t.Errorf("the record's own addresses became %v", r.IPs)
	}
}

// A rule by name outlives its link: the name is all that is left to find it by.
func TestRuleNames(t *testing.T) {
	rule := func(s Share, iif, oif string) Resource {
		return Resource{Kind: KindRule, Share: s, Rule: &Rule{IifName: iif, OifName: oif}}
	}
	r := Record{Resources: []Resource{
		{Kind: KindLink, Share: Own, Link: &veth}, {Kind: KindLink, Share: Shared, Link: &Link{Index: 7, Name: "vlan7", Kind: "vlan"}},
		rule(Own, "veth1", "vlan7"), rule(Own, "vlan7", "gone"), rule(Own, "", ""), rule(Shared, "eth0", ""),
	}}
	if got, want := r.RuleNames(), []string{"veth1", "vlan7", "gone"}; !reflect.DeepEqual(got, want) {
		t.Errorf("names of rules: %q, want %q", got, want)
	}
	if got, want := r.BareNames(), []string{"vlan7", "gone"}; !reflect.DeepEqual(got, want) {
		t.Errorf("those without an own link: %q, want %q", got, want)
	}
}

func TestHoldsWhatIsOwnAlone(t *testing.T) {
	r := fullRecord()
	x := r.Resources[1]
	if !r.Holds(x) {
		t.Error("its own rule is not held")
	}
	if x.Share = Shared; !r.Holds(x) {
		t.Error("what it means to somebody else counts")
	}
	if r.Resources[1].Share = Shared; r.Holds(x) {
		t.Error("a shared rule is held")
	}
}

func TestSameNode(t *testing.T) {
	r := fullRecord()
	here := node("b1")
	here.Now.BootTime, here.Mount = time.Hour, NamespaceID{Dev: 4, Ino: 99}
	if !r.SameNode(here) {
		t.Error("later, from another mount namespace: another node")
	}
	if r.SameNode(node("b2")) {
		t.Error("another boot: the same node")
	}
	if here.Netns.Ino++; r.SameNode(here) {
		t.Error("a nested node with the same boot id: the same node")
	}
}
