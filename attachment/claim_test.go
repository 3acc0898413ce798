package attachment

import (
	"encoding/json"
	"reflect"
	"testing"
)

var (
	host   = NamespaceID{Dev: 4, Ino: 4026531840}
	pod    = NamespaceID{Dev: 4, Ino: 4026532500}
	reused = NamespaceID{Dev: 4, Ino: 4026532600}
	veth   = Link{Index: 12, Name: "veth1", Kind: "veth", MAC: "aa:bb:cc:00:00:01"}
	ifb    = Link{Index: 13, Name: "bwp1", Kind: "ifb"}
)

func node(boot string) Node {
	return Node{Now: Moment{BootID: boot}, Netns: host, Mount: NamespaceID{Dev: 4, Ino: 4026531841}}
}

func TestJudge(t *testing.T) {
	otherHost := node("b1")
	otherHost.Netns.Ino++
	nothing := Sight{}
	inPlace := Sight{Netns: pod}
	replaced := Sight{Netns: reused}
	unreadable := Sight{NetnsUnknown: true}
	noNetlink := Sight{NetnsUnknown: true, LinksUnknown: true}
	seen := func(s Sight) Sight { s.Links = []Link{veth}; return s }

	for name, c := range map[string]struct {
		here    Node
		ownVeth bool
		noInode bool // the ADD could not read the pod's namespace
		delSeen bool
		torn    bool
		sight   Sight
		want    Life
	}{
		"netns as recorded":                         {sight: inPlace, want: Live},
		"netns gone":                                {sight: nothing, want: Dead},
		"path leads to another netns":               {sight: replaced, want: Dead},
		"netns gone, veth there":                    {ownVeth: true, sight: seen(nothing), want: Live},
		"path leads to another netns, veth there":   {ownVeth: true, sight: seen(replaced), want: Live},
		"netns as recorded, veth gone":              {ownVeth: true, sight: inPlace, want: Live},
		"inode given to another pod, veth gone":     {ownVeth: true, sight: replaced, want: Dead},
		"both gone":                                 {ownVeth: true, sight: nothing, want: Dead},
		"unreadable path, no veth":                  {sight: unreadable, want: Unknown},
		"unreadable path, veth there":               {ownVeth: true, sight: seen(unreadable), want: Live},
		"unreadable path, veth gone":                {ownVeth: true, sight: unreadable, want: Dead},
		"nothing can be read":                       {ownVeth: true, sight: noNetlink, want: Unknown},
		"links unreadable, one seen":                {ownVeth: true, sight: seen(noNetlink), want: Live},
		"links unreadable, netns gone":              {ownVeth: true, sight: Sight{LinksUnknown: true}, want: Unknown},
		"inode never recorded, path empty":          {noInode: true, sight: nothing, want: Dead},
		"inode never recorded, path unreadable":     {noInode: true, sight: unreadable, want: Unknown},
		"inode never recorded, something there":     {noInode: true, sight: inPlace, want: Unknown},
		"inode never recorded, veth gone":           {noInode: true, ownVeth: true, sight: inPlace, want: Dead},
		"DEL seen, netns as recorded":               {delSeen: true, sight: inPlace, want: Dead},
		"DEL seen, netns as recorded, veth there":   {delSeen: true, ownVeth: true, sight: seen(inPlace), want: Live},
		"DEL seen, both gone":                       {delSeen: true, ownVeth: true, sight: nothing, want: Dead},
		"DEL seen, unreadable path":                 {delSeen: true, sight: unreadable, want: Dead},
		"DEL seen, links unreadable":                {delSeen: true, ownVeth: true, sight: noNetlink, want: Unknown},
		"a teardown was begun, all of it is there":  {delSeen: true, torn: true, ownVeth: true, sight: seen(inPlace), want: Dead},
		"torn down without DEL, netns as recorded":  {torn: true, sight: inPlace, want: Dead},
		"earlier boot, same inode, same veth index": {here: node("b2"), ownVeth: true, sight: seen(inPlace), want: Dead},
		"another host netns in the same boot":       {here: otherHost, ownVeth: true, sight: seen(inPlace), want: Dead},
		"another host netns, nothing can be read":   {here: otherHost, sight: noNetlink, want: Dead},
	} {
		t.Run(name, func(t *testing.T) {
			claim := Claim{Node: node("b1"), NetnsID: pod, DelSeen: c.delSeen, Torn: c.torn}
			if c.ownVeth {
				claim.Links = []Link{veth}
			}
			if c.noInode {
				claim.NetnsID = NamespaceID{}
			}
			if c.here == (Node{}) {
				c.here = node("b1")
			}
			if got := claim.Judge(c.here, c.sight); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A mount namespace of one's own says nothing about the node: it makes a path
// unknown, which whoever looks must say, and no attachment dead.
func TestJudgeFromAnotherMountNamespace(t *testing.T) {
	agent := node("b1")
	agent.Mount.Ino++
	c := Claim{Node: node("b1"), NetnsID: pod}
	if got := c.Judge(agent, Sight{NetnsUnknown: true}); got != Unknown {
		t.Errorf("got %s, want %s", got, Unknown)
	}
	if got := c.Judge(agent, Sight{Netns: pod}); got != Live {
		t.Errorf("the same inode seen from another mount namespace: got %s, want %s", got, Live)
	}
}

func TestClaimOfRecord(t *testing.T) {
	key := Key{"net", "c1", "eth0"}
	r := Record{
		Key: key, State: Attached, Node: node("b1"), Netns: "/run/netns/p", NetnsID: pod,
		Resources: []Resource{
			{Kind: KindLink, Share: Own, Link: &veth},
			{Kind: KindLink, Share: Own, Link: &ifb},
			{Kind: KindLink, Share: Shared, Link: &Link{Index: 4, Name: "cni0", Kind: "bridge"}},
			{Kind: KindLink, Share: Shared, Link: &Link{Index: 9, Name: "veth9", Kind: "veth"}},
		},
	}
	// The ifb does not go with the pod's netns: it must not keep the pod alive.
	want := Claim{Key: key, State: Attached, Node: node("b1"), Netns: "/run/netns/p", NetnsID: pod, Links: []Link{veth}}
	if got := r.Claim(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for _, s := range []State{Deferred, Tearing, Owed, Closed} {
		if r.State = s; !r.Claim().DelSeen {
			t.Errorf("%s, and no DEL was seen", s)
		}
	}
}

func TestClaimSurvivesTheIndex(t *testing.T) {
	c := Claim{Key: Key{"net", "c1", "eth0"}, State: Deferred, Node: node("b1"), Netns: "/n", NetnsID: pod, DelSeen: true, Links: []Link{veth}}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var got Claim
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, c)
	}
}
