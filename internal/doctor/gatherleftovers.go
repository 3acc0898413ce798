package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/garbage"
	"github.com/backstop-cni/backstop/internal/ipam"
	"github.com/backstop-cni/backstop/journal"
)

// rules looks at those for single addresses: who has the address, and what says that it was a pod's. Without that a rule is
// somebody else's, a VPN's for one.
func (x *gathering) rules(held map[netip.Addr]string, dead []cacheEntry) {
	all, err := x.Host.AllRules()
	if err != nil {
		x.unread(err)
		return
	}
	was := map[netip.Addr]string{}
	for _, e := range dead {
		for _, ip := range e.ips {
			was[ip] = "of " + e.key.String() + ", whose netns is gone"
		}
	}
	for k, r := range x.past {
		for _, ip := range r.Addresses() {
			was[ip] = "of " + k.String() + ", which is closed"
		}
	}
	for _, r := range all {
		for _, ip := range r.Addresses() {
			if !attachment.PodAddress(ip) {
				continue
			}
			out := Rule{Text: r.String(), Addr: ip, Held: held[ip], Evidence: x.evidence(r, ip, was)}
			if out.Held == "" && out.Evidence != "" {
				out.Held = x.routed(ip)
			}
			x.f.Rules = append(x.f.Rules, out)
		}
	}
}

func (x *gathering) routed(ip netip.Addr) string {
	rt, err := x.Host.RouteTo(ip)
	switch {
	case err != nil:
		return "what the kernel would not tell: " + err.Error()
	case rt != nil && rt.Dst == ip.String():
		return "route " + rt.String()
	}
	return ""
}

func (x *gathering) evidence(r attachment.Rule, ip netip.Addr, was map[netip.Addr]string) string {
	if w := was[ip]; w != "" {
		return w
	}
	for _, s := range x.subnets {
		if s.Contains(ip) {
			return fmt.Sprintf("in %s of network %s", s.Prefix, s.network)
		}
	}
	if x.aws && slices.Contains([]uint32{512, 1024, 1536}, r.Priority) {
		return "with a priority that the AWS VPC CNI gives"
	}
	return ""
}

// fresh is how long a reservation may be of an ADD that is under way: kubelet's limit for a call.
const fresh = 2 * time.Minute

// reservations looks for those of host-local that nothing else knows of.
func (x *gathering) reservations(ctx context.Context, held map[netip.Addr]string) {
	var stores []garbage.Store
	var dirs []string
	for _, p := range x.settings {
		if c, err := ipam.Parse(p.settings.IPAM); err == nil && c.Type == ipam.HostLocal && !slices.Contains(stores, garbage.Store{IPAM: c, Network: p.network}) {
			stores = append(stores, garbage.Store{IPAM: c, Network: p.network})
		}
		if !slices.Contains(dirs, p.settings.RuntimeCacheDir) {
			dirs = append(dirs, p.settings.RuntimeCacheDir)
		}
	}
	if len(stores) == 0 {
		return
	}
	caches := garbage.ReadCaches(dirs)
	for _, j := range x.f.Journals {
		if j.Err != "" {
			continue
		}
		var finder *garbage.Finder
		err := journal.At(j.Path).ViewWithin(ctx, x.LockWait, func(tx *journal.Tx) (err error) {
			finder, err = garbage.NewFinder(x.Env, tx, caches)
			return err
		})
		if err != nil {
			x.unread(err)
			continue
		}
		items, err := finder.Reservations(stores)
		if err != nil {
			x.unread(err)
		}
		for _, it := range items {
			x.reservation(it, held)
		}
		return // of several journals the first tells: what it does not know is unknown, not dead
	}
}

func (x *gathering) reservation(it garbage.Item, held map[netip.Addr]string) {
	_, recorded := x.records[it.Key]
	fi, err := os.Stat(it.File)
	has := held[it.Reservation.Address]
	if err != nil || time.Since(fi.ModTime()) < fresh || has != "" && has != "record" && has != "cache entry" {
		return
	}
	if it.Life == attachment.Dead || !recorded && has == "" {
		x.f.Reservations = append(x.f.Reservations, Reservation{File: it.File, Key: it.Key.String(), Dead: it.Life == attachment.Dead, Why: it.Why})
	}
}
