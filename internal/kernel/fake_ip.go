package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

// IP does what the ip program does with a line of its words, or, where the line
// begins with "fdb", the bridge program:
//
//	link add NAME [index N] [address MAC] [mtu N] [link PARENT] type KIND [peer name NAME [netns NS]]
//	link set NAME [up] [master BRIDGE | nomaster] [name NAME] [address MAC]
//	link del NAME
//	[-6] rule add [not] [pref N] [from P] [to P] [iif NAME] [oif NAME] [fwmark N[/N]] [tos N] [ipproto N] [sport N[-N]]
//	     [dport N[-N]] [uidrange N-N] [suppress_prefixlength N] [protocol N|NAME] [lookup TABLE | goto N | blackhole | …]
//	[-6] route add [blackhole …] PREFIX [via A] [dev NAME] [table T] [metric N] [scope S] [protocol N|NAME] [src A] [tos N]
//	neigh add A lladdr MAC dev NAME [nud permanent|reachable|stale|noarp]
//	fdb add MAC dev NAME [master] [local|static|dynamic] [vlan N]
//
// A peer's netns is any word; the first one named has id 0.
func (f *Fake) IP(line string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &words{left: strings.Fields(line)}
	six := w.skip("-6")
	err := f.do(w.next()+" "+w.next(), w, six)
	if err == nil && w.err == nil && len(w.left) > 0 {
		w.fail(w.left[0])
	}
	if w.err != nil {
		err = w.err
	}
	if err != nil {
		return fmt.Errorf("ip %s: %w", line, err)
	}
	return nil
}

func (f *Fake) do(what string, w *words, six bool) error {
	switch what {
	case "link add":
		return f.addLink(w)
	case "link set":
		return f.setLink(w)
	case "link del":
		l := f.byName(w.next())
		if l == nil {
			return unix.ENODEV
		}
		f.dropLink(*l)
		return nil
	case "rule add":
		return f.addRule(w, six)
	case "route add":
		return f.addRoute(w, six)
	case "neigh add", "fdb add":
		return f.addNeigh(w, strings.HasPrefix(what, "fdb"))
	}
	w.fail(what)
	return nil
}

func (f *Fake) addLink(w *words) error {
	l := attachment.Link{Name: w.next(), MTU: 1500, ParentNetnsID: -1}
	var peer, space string
	for len(w.left) > 0 && w.err == nil {
		switch key := w.next(); key {
		case "index":
			l.Index = w.int()
		case "address":
			l.MAC = w.next()
		case "mtu":
			l.MTU = w.int()
		case "link":
			p := f.byName(w.next())
			if p == nil {
				return unix.ENODEV
			}
			l.Parent = p.Index
		case "type":
			l.Kind = w.next()
		case "peer":
			w.skip("name")
			peer = w.next()
			if w.skip("netns") {
				space = w.next()
			}
		default:
			w.fail(key)
		}
	}
	if f.byName(l.Name) != nil || f.byIndex(l.Index) != nil {
		return unix.EEXIST
	}
	if l.Kind == "veth" {
		l = f.addPeer(l, peer, space)
	}
	f.links = append(f.links, f.complete(l))
	return nil
}

// addPeer gives a veth its other end, which the fake holds only if it is in this namespace.
func (f *Fake) addPeer(l attachment.Link, name, space string) attachment.Link {
	if space != "" {
		l.ParentNetnsID = slices.Index(f.spaces, space)
		if l.ParentNetnsID < 0 {
			f.spaces = append(f.spaces, space)
			l.ParentNetnsID = len(f.spaces) - 1
		}
		l.Parent = 2 // the first link of a new namespace after lo
		return l
	}
	p := f.complete(attachment.Link{Name: name, Kind: "veth", MTU: l.MTU, ParentNetnsID: -1})
	l.Parent = p.Index
	f.links = append(f.links, p)
	l = f.complete(l)
	f.byIndex(p.Index).Parent = l.Index
	return l
}

// complete gives a link the index and MAC that the kernel would give it.
func (f *Fake) complete(l attachment.Link) attachment.Link {
	if l.Index == 0 {
		for l.Index = 2; f.byIndex(l.Index) != nil; {
			l.Index++
		}
	}
	if l.MAC == "" {
		l.MAC = fmt.Sprintf("02:00:00:00:%02x:%02x", l.Index>>8&0xff, l.Index&0xff)
	}
	return l
}

func (f *Fake) setLink(w *words) error {
	l := f.byName(w.next())
	if l == nil {
		return unix.ENODEV
	}
	for len(w.left) > 0 && w.err == nil {
		switch key := w.next(); key {
		case "up":
		case "master":
			m := f.byName(w.next())
			if m == nil {
				return unix.ENODEV
			}
			l.Master = m.Index
		case "nomaster":
			l.Master = 0
		case "name":
			l.Name = w.next()
		case "address":
			l.MAC = w.next()
		default:
			w.fail(key)
		}
	}
	return nil
}

func (f *Fake) byName(name string) *attachment.Link {
	return f.find(func(l attachment.Link) bool { return l.Name == name })
}

func (f *Fake) byIndex(i int) *attachment.Link {
	return f.find(func(l attachment.Link) bool { return l.Index == i })
}

func (f *Fake) find(is func(attachment.Link) bool) *attachment.Link {
	if i := slices.IndexFunc(f.links, is); i >= 0 {
		return &f.links[i]
	}
	return nil
}

func (f *Fake) addNeigh(w *words, fdb bool) error {
	n := attachment.Neighbour{Family: unix.AF_INET, State: unix.NUD_PERMANENT}
	if fdb {
		n.Family, n.MAC = unix.AF_BRIDGE, w.next()
	} else {
		n.Dst = w.next()
		if a, err := netip.ParseAddr(n.Dst); err != nil {
			return err
		} else if a.Is6() {
			n.Family = unix.AF_INET6
		}
	}
	for len(w.left) > 0 && w.err == nil {
		switch key := w.next(); key {
		case "lladdr":
			n.MAC = w.next()
		case "dev":
			l := f.byName(w.next())
			if l == nil {
				return unix.ENODEV
			}
			n.IfIndex = l.Index
		case "vlan":
			n.Vlan = uint16(w.int())
		case "nud", "master", "permanent", "local":
		case "static", "noarp":
			n.State = unix.NUD_NOARP
		case "dynamic", "reachable":
			n.State = unix.NUD_REACHABLE
		case "stale":
			n.State = unix.NUD_STALE
		default:
			w.fail(key)
		}
	}
	if _, err := net.ParseMAC(n.MAC); err != nil {
		return err
	}
	f.neighs = append(f.neighs, n)
	return nil
}
