package graph

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

func record(id, ip string, state attachment.State) *attachment.Record {
	own := attachment.Own
	return &attachment.Record{
		Key: attachment.Key{Network: "aws-cni", ContainerID: id, IfName: "eth0"}, State: state, IPs: []netip.Addr{netip.MustParseAddr(ip)},
		Resources: []attachment.Resource{
			{Kind: attachment.KindLink, Share: own, Link: &attachment.Link{Index: 12, Name: "eni" + id[:3], Kind: "veth"}},
			{Kind: attachment.KindRule, Share: own, Rule: &attachment.Rule{Priority: 1536, Src: ip, Table: 2}},
			{Kind: attachment.KindRoute, Share: own, Route: &attachment.Route{Dst: ip, Table: 254, Oif: 12, Dev: "eni" + id[:3]}},
		},
	}
}

var two = []*attachment.Record{record("0a1b2c3d4e5f6a7b", "10.0.0.5", attachment.Attached), record(`q"\<b>`, "10.0.0.6", attachment.Deferred)}

func TestDot(t *testing.T) {
	var b strings.Builder
	if err := Of(two).Dot(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`n0 [shape=box, label="aws-cni/0a1b2c3d4e5f…\neth0, attached\n10.0.0.5"];`,
		`n1 [shape=ellipse, label="eni0a1\nveth"];`,
		`n2 [shape=cylinder, label="table 2", style=dashed];`,
		`n0 -> n1 [label=""];`,
		`n0 -> n2 [label="rule 1536: from 10.0.0.5"];`,
		`n3 -> n1 [label="to 10.0.0.5"];`,
		`label="aws-cni/q\"\\<b>\neth0, deferred\n10.0.0.6", style=dashed];`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), `"table 2"`); n != 1 {
		t.Errorf("the table that both have is drawn %d times", n)
	}
}

func TestMermaid(t *testing.T) {
	var b strings.Builder
	if err := Of(two).Mermaid(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"flowchart LR\n", `n0["aws-cni/0a1b2c3d4e5f…<br>eth0, attached<br>10.0.0.5"]`, `n1(["eni0a1<br>veth"])`, `n2[("table 2")]`, "n0 --> n1\n",
		`n0 -->|"rule 1536: from 10.0.0.5"| n2`, `aws-cni/q#quot;\#lt;b#gt;<br>eth0, deferred`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}
