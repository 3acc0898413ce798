package model

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// reserve gives an attachment its addresses: those that it has already, or some of the lowest free ones.
func (w *world) reserve(a *att, o *op) (ips []netip.Addr, err error) {
	held, err := a.net.holders()
	if err != nil {
		return nil, err
	}
	for _, v6 := range []bool{false, true} {
		if v6 && !a.net.v6 || !v6 && !a.net.v4 {
			continue
		}
		var free, mine []netip.Addr
		for _, ip := range a.net.addresses(v6) {
			switch held[ip] {
			case "":
				free = append(free, ip)
			case a.owner():
				mine = append(mine, ip)
			}
		}
		switch {
		case len(mine) > 0:
			ips = append(ips, mine[0])
		case len(free) == 0:
			return nil, fmt.Errorf("%s has no address left", a.net.name)
		default:
			ips = append(ips, free[o.rand.IntN(min(3, len(free)))])
		}
	}
	return ips, a.net.hold(a.owner(), ips)
}

// holders tells whose each reserved address is, by containerID/ifName.
func (n *network) holders() (map[netip.Addr]string, error) {
	out := map[netip.Addr]string{}
	if !n.hostLocal {
		for owner, ips := range n.reserved {
			for _, ip := range ips {
				out[ip] = owner
			}
		}
		return out, nil
	}
	files, err := os.ReadDir(n.dir())
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if ip, err := netip.ParseAddr(f.Name()); err == nil {
			b, err := os.ReadFile(filepath.Join(n.dir(), f.Name()))
			if err != nil {
				return nil, err
			}
			out[ip] = strings.Join(strings.Fields(string(b)), "/")
		}
	}
	return out, nil
}

func (n *network) dir() string { return filepath.Join(dataDir, n.name) }

func (n *network) hold(owner string, ips []netip.Addr) error {
	if !n.hostLocal {
		n.reserved[owner] = ips
		return nil
	}
	for _, ip := range ips {
		if err := os.WriteFile(filepath.Join(n.dir(), ip.String()), []byte(strings.Replace(owner, "/", "\r\n", 1)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// holds are an owner's addresses.
func (n *network) holds(owner string) (ips []netip.Addr) {
	all, _ := n.holders()
	for ip, o := range all {
		if o == owner {
			ips = append(ips, ip)
		}
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return ips
}

func (n *network) release(owner string) (err error) {
	for _, ip := range n.holds(owner) {
		if n.hostLocal {
			err = errors.Join(err, os.Remove(filepath.Join(n.dir(), ip.String())))
		}
	}
	delete(n.reserved, owner)
	return err
}
