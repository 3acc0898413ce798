package garbage

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/ipam"
)

// Store is where host-local keeps a network's reservations.
type Store struct {
	IPAM    ipam.Config
	Network string
}

// Reservations gives those of attachments that are not live, in order.
func (f *Finder) Reservations(stores []Store) (out []Item, err error) {
	for _, s := range stores {
		all, lerr := s.IPAM.List(s.Network)
		err = errors.Join(err, lerr)
		for _, r := range all {
			life, why := f.lifeOf(s.Network, r)
			if life == attachment.Dead {
				life, why = f.doubt(s.Network, r, why)
			}
			if life == attachment.Live {
				continue
			}
			k := attachment.Key{Network: s.Network, ContainerID: r.ContainerID, IfName: r.IfName}
			out = append(out, Item{Key: k, Life: life, Why: why, File: r.File, Reservation: &r})
		}
	}
	return out, err
}

// doubt looks for what speaks against a dead one's reservation: an address that the record does not have is of another
// ADD, which may be under way, and one that the node has a route for is somebody's.
func (f *Finder) doubt(network string, r attachment.Reservation, why string) (attachment.Life, string) {
	rec, ok := f.records[owner{network, r.ContainerID, r.IfName}]
	if ok && len(rec.ips) > 0 {
		if !slices.Contains(rec.ips, r.Address) {
			return attachment.Unknown, "recorded with other addresses: another ADD may be under way"
		}
		return attachment.Dead, why
	}
	rt, err := f.env.Kernel.RouteTo(r.Address)
	switch {
	case err != nil:
		return attachment.Unknown, err.Error()
	case rt != nil && rt.Dst == r.Address.String() && rt.Gateway == "":
		return attachment.Unknown, "not recorded, and the node has a route to it"
	}
	return attachment.Dead, why
}

// lifeOf judges a reservation. A file of host-local's first format names no
// interface: it is live if anything of its container is.
func (f *Finder) lifeOf(network string, r attachment.Reservation) (attachment.Life, string) {
	if r.IfName != "" {
		return f.judge(owner{network, r.ContainerID, r.IfName})
	}
	life, why := attachment.Unknown, "neither a record nor the runtime's cache knows it"
	for _, o := range f.interfaces(network, r.ContainerID) {
		l, w := f.judge(o)
		if l != attachment.Dead {
			return l, w
		}
		life, why = l, w
	}
	return life, why
}

func (f *Finder) interfaces(network, container string) (out []owner) {
	for o := range f.records {
		if o.network == network && o.container == container {
			out = append(out, o)
		}
	}
	for _, o := range f.inCache(container) {
		if o.network == network && !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	return out
}

// CacheEntries gives the runtime's entries of dead attachments that no open
// record needs: while there is one, the entry tells whether the primary's DEL finished.
func (f *Finder) CacheEntries() []Item {
	var out []Item
	for o, e := range f.cache {
		if _, recorded := f.records[o]; recorded {
			continue
		}
		life, why := f.judge(o)
		if life == attachment.Dead {
			out = append(out, Item{Key: o.key(), Life: life, Why: why, File: e.path(o)})
		}
	}
	slices.SortFunc(out, func(a, b Item) int { return strings.Compare(a.File, b.File) })
	return out
}

// Remove removes a dead item. A reservation is read once more under host-local's
// lock. The finder should be fresh: the pod may have come meanwhile.
func (f *Finder) Remove(s []Store, it Item) error {
	if it.Life != attachment.Dead {
		return fmt.Errorf("%s is %s: only what is dead is removed", it.File, it.Life)
	}
	if it.Reservation == nil {
		if err := os.Remove(it.File); err != nil {
			return fmt.Errorf("remove cache entry: %w", err)
		}
		return nil
	}
	for _, st := range s {
		if st.Network != it.Key.Network {
			continue
		}
		_, err := st.IPAM.Release(st.Network, ipam.LockWait, func(all []attachment.Reservation) []attachment.Reservation {
			return slices.DeleteFunc(all, func(r attachment.Reservation) bool { return r != *it.Reservation }) // or another's by now
		})
		if err != nil {
			return err
		}
	}
	return nil
}
