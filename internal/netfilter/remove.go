package netfilter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// removeTries bounds how often a removal is begun anew because somebody changed the ruleset.
const removeTries = 5

// Remove removes pieces, each group in one change: all of it or nothing. What serves others by now stays, what has gone by
// itself is as good as removed. It looks again afterwards, and tells what it removed. What fails in one group does not stop
// the others.
func (c *Conn) Remove(groups ...[]Piece) (removed []Piece, err error) {
	// A change takes the kernel as long for all as for one: apart only if somebody is at the same pieces.
	if all := own(slices.Concat(groups...)); len(groups) > 1 && c.delete(all) == nil {
		return all, c.gone(all)
	}
	for _, pieces := range groups {
		gone, gerr := c.remove(own(pieces))
		removed, err = append(removed, gone...), errors.Join(err, gerr)
	}
	return removed, errors.Join(err, c.gone(removed))
}

// own leaves out what serves others.
func own(pieces []Piece) []Piece {
	return slices.DeleteFunc(slices.Clone(pieces), func(p Piece) bool { return p.Serves != "" })
}

func (c *Conn) remove(pieces []Piece) ([]Piece, error) {
	var err error
	for range removeTries {
		if len(pieces) == 0 {
			return nil, nil
		}
		if err = c.delete(pieces); err == nil {
			return pieces, nil
		}
		// A plugin's own DEL took something of it, or somebody leads to one of the chains by now, or the kernel had more to
		// say than there was room for.
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOBUFS) {
			return nil, fmt.Errorf("remove netfilter of %s: %w", pieces[0].Key, err)
		}
		s, rerr := c.Read()
		if rerr != nil {
			return nil, rerr
		}
		pieces = s.still(pieces)
	}
	return nil, fmt.Errorf("remove netfilter of %s: %w", pieces[0].Key, err)
}

// still gives those of the pieces that are there and may go.
func (s *Ruleset) still(pieces []Piece) []Piece {
	var keys []attachment.Key
	for _, p := range pieces {
		if !slices.Contains(keys, p.Key) {
			keys = append(keys, p.Key)
		}
	}
	return slices.DeleteFunc(s.Find(keys), func(p Piece) bool {
		return p.Serves != "" || !slices.ContainsFunc(pieces, func(o Piece) bool { return o.Netfilter == p.Netfilter })
	})
}

// delete sends one batch: the rules of chains that serve others by their handles, which the kernel does not give out
// again, then the chains with what is in them.
func (c *Conn) delete(pieces []Piece) error {
	// Of its own: answers to a batch that failed must not be taken for those to a question.
	batch, err := nftables.New(nftables.WithSockOptions(room))
	if err != nil {
		return err
	}
	for _, p := range pieces {
		t := &nftables.Table{Name: p.Table, Family: families[p.Family]}
		chain := &nftables.Chain{Name: p.Chain, Table: t}
		if p.Handle == 0 {
			batch.DelChain(chain)
			continue
		}
		if err := batch.DelRule(&nftables.Rule{Table: t, Chain: chain, Handle: p.Handle}); err != nil {
			return err
		}
	}
	return batch.Flush()
}

// room lets the kernel take a batch of thousands of removals, and answer each before the first answer is read.
func room(c *netlink.Conn) error {
	const bytes = 4 << 20
	return errors.Join(c.SetReadBuffer(bytes), c.SetWriteBuffer(bytes))
}

// gone is an error that names what is still there.
func (c *Conn) gone(removed []Piece) error {
	if len(removed) == 0 {
		return nil
	}
	s, err := c.Read()
	if err != nil {
		return fmt.Errorf("look again after the removal: %w", err)
	}
	if left := s.still(removed); len(left) > 0 {
		return fmt.Errorf("%s of %s is still there after its removal", left[0], left[0].Key)
	}
	return nil
}
