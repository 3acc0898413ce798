package teardown

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/rtattr"
)

var here = attachment.Node{
	Now:   attachment.Moment{BootID: "b1"},
	Netns: attachment.NamespaceID{Dev: 4, Ino: 4026531840},
}

// record is an attachment of this node.
func record(id, ip string, rs ...attachment.Resource) *attachment.Record {
	r := &attachment.Record{
		Key: attachment.Key{Network: "net", ContainerID: id, IfName: "eth0"}, State: attachment.Attached, Node: here, Resources: rs,
	}
	if ip != "" {
		r.IPs = []netip.Addr{netip.MustParseAddr(ip)}
	}
	return r
}

func live(r *attachment.Record) Other    { return Other{r, attachment.Live} }
func dead(r *attachment.Record) Other    { return Other{r, attachment.Dead} }
func unknown(r *attachment.Record) Other { return Other{r, attachment.Unknown} }

// own makes a resource of a link, rule, route or neighbour.
func own(x any) attachment.Resource {
	r := attachment.Resource{Share: attachment.Own}
	switch x := x.(type) {
	case attachment.Link:
		r.Kind, r.Link = attachment.KindLink, &x
	case attachment.Rule:
		r.Kind, r.Rule = attachment.KindRule, &x
	case attachment.Route:
		r.Kind, r.Route = attachment.KindRoute, &x
	case attachment.Neighbour:
		r.Kind, r.Neigh = attachment.KindNeighbour, &x
	default:
		panic(fmt.Sprintf("own: %T", x))
	}
	return r
}

func fdb(n attachment.Neighbour) attachment.Resource {
	return attachment.Resource{Kind: attachment.KindFDB, Share: attachment.Own, Neigh: &n}
}

func shared(x any) attachment.Resource {
	r := own(x)
	r.Share = attachment.Shared
	return r
}

// veth is a host end of a pod's interface.
func veth(name string, index int) attachment.Link {
	return attachment.Link{Index: index, Name: name, Kind: "veth", MAC: fmt.Sprintf("aa:bb:cc:00:00:%02x", index)}
}

func link(kind, name string, index int) attachment.Link {
	l := veth(name, index)
	l.Kind = kind
	return l
}

// rule reads "PRIORITY: [from A] [to A] [iif NAME] [lookup N] [proto N]" and gives it the bytes
// that the kernel would.
func rule(words string) attachment.Rule {
	r := attachment.Rule{Family: 2}
	head := []byte{2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}
	var attrs []byte
	num := func(s string) (n uint32) { _, _ = fmt.Sscan(s, &n); return n }
	u32 := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	f := strings.Fields(words)
	r.Priority = num(strings.TrimSuffix(f[0], ":"))
	attrs = rtattr.Append(attrs, 6, u32(r.Priority))
	for i := 1; i < len(f); i += 2 {
		v := f[i+1]
		addr := func(at int, typ uint16) string {
			a := netip.MustParseAddr(v)
			if a.Is6() {
				r.Family, head[0] = 10, 10
			}
			head[at], attrs = byte(a.BitLen()), rtattr.Append(attrs, typ, a.AsSlice())
			return v
		}
		switch f[i] {
		case "from":
			r.Src = addr(2, 2)
		case "to":
			r.Dst = addr(1, 1)
		case "iif":
			r.IifName, attrs = v, rtattr.Append(attrs, 3, append([]byte(v), 0))
		case "lookup":
			r.Table, head[4], attrs = num(v), byte(num(v)), rtattr.Append(attrs, 15, u32(num(v)))
		case "proto":
			attrs = rtattr.Append(attrs, 21, []byte{byte(num(v))})
		default:
			panic("rule: " + words)
		}
	}
	r.Raw = append(head, rtattr.Normal(attrs)...)
	return r
}

// route leads to dst over a link.
func route(dst string, over attachment.Link, table uint32) attachment.Route {
	r := attachment.Route{Family: 2, Dst: dst, Table: table, Oif: over.Index, Dev: over.Name}
	if strings.Contains(dst, ":") {
		r.Family = 10
	}
	r.Raw = fmt.Appendf(nil, "%s table %d oif %d", dst, table, over.Index)
	return r
}

func neigh(dst string, over attachment.Link) attachment.Neighbour {
	return attachment.Neighbour{Family: 2, IfIndex: over.Index, Dev: over.Name, Dst: dst, MAC: "0a:58:0a:00:00:02", State: 0x80}
}
