package model

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

type addr = netip.Addr

// baseScript is the node's own network and the bystanders. dummy links do not exist on every kernel: veths stand in.
const baseScript = `
link add uplink type veth peer name uplinkpeer
link set uplink up
link set uplinkpeer up
link add eni2 type veth peer name eni2peer
link set eni2 up
link set eni2peer up
link add eni3 type veth peer name eni3peer
link set eni3 up
link set eni3peer up
link add cni0 type bridge
link set cni0 address 02:00:00:00:00:01
link set cni0 up
addr add 10.3.0.1/24 dev cni0
addr add 172.16.0.1/24 dev uplink
addr add 172.16.2.1/24 dev eni2
addr add 172.16.3.1/24 dev eni3
route add default via 172.16.2.254 dev eni2 table 102
route add default via 172.16.3.254 dev eni3 table 103
route add default via 172.16.0.254 dev uplink
rule add pref 1024 fwmark 0x80/0x80 lookup main
rule add pref 1536 from 172.16.2.1 lookup 102
rule add pref 512 to 10.1.0.0/24 lookup main
rule add pref 1536 from 10.1.0.8/29 lookup 102
rule add pref 512 to 10.1.0.100 lookup main
rule add pref 1536 from 10.1.0.100 lookup 103
rule add pref 10 iif uplink lookup 102
rule add pref 512 to fd00:6::/64 lookup main
rule add pref 512 to fd00:6::100 lookup main
route add fd00:6::100 dev uplink
route add 10.1.0.100 dev uplink
route add 10.4.0.100 dev uplink
route add blackhole 10.4.0.0/16
neigh add 10.4.0.10 lladdr 02:00:00:00:00:10 dev uplink nud permanent
neigh add 10.3.0.10 lladdr 02:00:00:00:00:11 dev cni0 nud permanent
link add eni0123456789 address ee:ee:ee:ee:ee:ee type veth peer name tap0
link set eni0123456789 up
link add vbrport type veth peer name vbrpeer
link set vbrport master cni0 up
`

// dressBase empties the node's kernel and makes the base anew.
func (w *world) dressBase() error {
	if err := w.wipe(func(*item) bool { return false }); err != nil {
		return err
	}
	if err := ip(strings.Split(strings.TrimSpace(baseScript), "\n")...); err != nil {
		return err
	}
	if out, err := exec.Command("bridge", "fdb", "add", "02:00:00:00:00:12", "dev", "vbrport", "master", "static").CombinedOutput(); err != nil {
		return fmt.Errorf("bridge fdb add: %w: %s", err, out)
	}
	for name, into := range map[string]*int{"uplink": &w.uplink, "cni0": &w.bridge} {
		l, err := w.nl.LinkByName(name)
		if err != nil {
			return err
		}
		*into = l.Attrs().Index
	}
	return nil
}

// wipe removes from the kernel what a reboot would, but what is kept.
func (w *world) wipe(keep func(*item) bool) error {
	l, err := list()
	if err != nil {
		return err
	}
	errs := []error{wipeRules(l, keep), unlinkAll(l, keep)}
	for _, it := range l.items {
		if it.kind == "route" && !keep(it) {
			errs = append(errs, sendRaw(unix.RTM_DELROUTE, it))
		}
	}
	return errors.Join(errs...)
}

// unlinkAll deletes links, all at once: each of them waits for the kernel far longer than it works. One may have gone
// with its peer.
func unlinkAll(l listing, keep func(*item) bool) error {
	var group sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, it := range l.items {
		if it.kind != "link" || it.name == "lo" || keep(it) {
			continue
		}
		group.Go(func() {
			err := netlink.LinkDel(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: it.index}})
			if !isGone(err) {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// wipeRules removes all rules and makes those anew that are kept: a request to delete one takes the first that has what
// it names, and there may be others.
func wipeRules(l listing, keep func(*item) bool) error {
	added := func(it *item) bool { return it.kind == "rule" && it.prio > 0 && it.prio < 32766 } // the kernel's own have 0, 32766 and 32767
	for now := l; ; {
		left := 0
		for _, it := range now.items {
			if added(it) {
				left++
				if err := sendRaw(unix.RTM_DELRULE, it); err != nil {
					return err
				}
			}
		}
		if left == 0 {
			break
		}
		var err error
		if now, err = list(); err != nil {
			return err
		}
	}
	for _, text := range slices.Sorted(maps.Keys(l.items)) {
		if it := l.items[text]; added(it) && keep(it) {
			for range l.count[text] {
				if err := sendRaw(unix.RTM_NEWRULE, it); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ip runs lines of ip's words.
func ip(lines ...string) error {
	for _, family := range []string{"-4", "-6"} {
		some := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, "fd00:") != (family == "-6") })
		if len(some) == 0 {
			continue
		}
		cmd := exec.Command("ip", family, "-batch", "-")
		cmd.Stdin = strings.NewReader(strings.Join(some, "\n") + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s -batch: %w: %s", family, err, out)
		}
	}
	return nil
}

func isGone(err error) bool {
	return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENXIO)
}
