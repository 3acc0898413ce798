package netfilter

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
)

// Owner is whom a piece is known to be of.
type Owner struct {
	Network     string // empty where the plugin writes the container's id alone: then it is of the container in any network
	ContainerID string
}

// Piece is one chain or rule that a plugin made for one container.
type Piece struct {
	attachment.Netfilter
	Key    attachment.Key // of those asked about, the first that it is of
	Owners []Owner        // more than one where names do not tell them apart
	// Addresses are the container's that are in it, where they are of the network's own IPAM; Elsewhere are those of another.
	Addresses []netip.Addr
	Elsewhere []netip.Addr
	// Serves says who else uses a chain that has the container's name: then it has to stay. Empty otherwise.
	Serves string
}

// Find gives the pieces of the attachments' containers, each once: rules first, then chains, those that lead to others first.
func (s *Ruleset) Find(keys []attachment.Key) []Piece {
	if len(s.chains) == 0 {
		return nil
	}
	f := finding{s: s, at: map[attachment.Netfilter]int{}}
	f.index()
	for _, k := range keys {
		f.chains(k)
		owner := Owner{k.Network, k.ContainerID}
		f.rules(k, owner, masqComment(k), place{"inet", tableMasq, chainMasq})
		for _, chain := range hostPortChains {
			for _, family := range []string{"ip", "ip6"} {
				f.rules(k, Owner{ContainerID: k.ContainerID}, k.ContainerID, place{family, tableHostPort, chain})
			}
		}
	}
	chains := slices.DeleteFunc(slices.Clone(f.pieces), func(p Piece) bool { return p.Handle != 0 })
	return append(slices.DeleteFunc(f.pieces, func(p Piece) bool { return p.Handle == 0 }), chains...)
}

type finding struct {
	s         *Ruleset
	commented map[commented][]rule
	leading   map[place][]lead
	pieces    []Piece
	at        map[attachment.Netfilter]int // where in pieces
}

type commented struct {
	place
	comment string
}

// lead is a rule that leads to a chain, and where it is.
type lead struct {
	in place
	rule
}

// index sorts the rules by what is asked of them: they may be thousands, and so may be the attachments.
func (f *finding) index() {
	f.commented, f.leading = map[commented][]rule{}, map[place][]lead{}
	for p, rules := range f.s.chains {
		for _, r := range rules {
			if r.comment != "" {
				k := commented{p, r.comment}
				f.commented[k] = append(f.commented[k], r)
			}
			for _, chain := range r.jumps {
				to := place{p.family, p.table, chain}
				f.leading[to] = append(f.leading[to], lead{p, r})
			}
		}
	}
}

func (f *finding) add(p Piece, of Owner) {
	i, there := f.at[p.Netfilter]
	if !there {
		i = len(f.pieces)
		f.at[p.Netfilter] = i
		f.pieces = append(f.pieces, p)
	}
	if !slices.Contains(f.pieces[i].Owners, of) {
		f.pieces[i].Owners = append(f.pieces[i].Owners, of)
	}
}

// rules adds those of a shared chain that have the comment.
func (f *finding) rules(k attachment.Key, of Owner, comment string, in place) {
	for _, r := range f.commented[commented{in, comment}] {
		f.add(Piece{Netfilter: netfilter(in, r, ""), Key: k, Addresses: r.addrs}, of)
	}
}

func netfilter(in place, r rule, jump string) attachment.Netfilter {
	return attachment.Netfilter{Family: in.family, Table: in.table, Chain: in.chain, Handle: r.handle, Jump: jump, Comment: r.comment}
}

// chains adds the container's own chains and the rules that lead to them.
func (f *finding) chains(k attachment.Key) {
	stays := map[place]bool{}
	for _, c := range ownChains(k) {
		inside, there := f.s.chains[c.place]
		if !there {
			continue
		}
		of := Owner{k.Network, k.ContainerID}
		if c.family == "bridge" {
			of.Network = ""
		}
		whole := Piece{Netfilter: attachment.Netfilter{Family: c.family, Table: c.table, Chain: c.chain}, Key: k, Serves: f.serves(c, inside, stays)}
		stays[c.place] = whole.Serves != ""
		entry := place{c.family, c.table, c.entry}
		jumps := slices.DeleteFunc(slices.Clone(f.commented[commented{entry, c.comment}]), func(r rule) bool { return !slices.Contains(r.jumps, c.chain) })
		for _, r := range slices.Concat(jumps, inside) {
			whole.note(c, r)
		}
		for _, r := range jumps {
			if _, own := f.at[attachment.Netfilter{Family: c.family, Table: c.table, Chain: c.entry}]; own {
				continue // it goes with the chain it is in
			}
			f.add(Piece{Netfilter: netfilter(entry, r, c.chain), Key: k, Addresses: whole.Addresses, Elsewhere: whole.Elsewhere}, of)
		}
		f.add(whole, of)
	}
}

func (p *Piece) note(c ownChain, r rule) {
	if c.elsewhere {
		p.Elsewhere = append(p.Elsewhere, r.addrs...)
	} else {
		p.Addresses = append(p.Addresses, r.addrs...)
	}
}

// serves says for whom else a chain is: what else leads to it, or is in it. A chain's name is a hash of the two names one
// after the other, without anything in between, so that two containers may have the same.
func (f *finding) serves(c ownChain, inside []rule, stays map[place]bool) string {
	for _, l := range f.leading[c.place] {
		if l.in.chain != c.entry || l.comment != c.comment || stays[l.in] {
			return fmt.Sprintf("the rule %s handle %d, which is not the plugin's for this container, leads to it", l.in.chain, l.handle)
		}
	}
	for _, r := range inside {
		if r.comment != "" && r.comment != c.inner {
			return fmt.Sprintf("the rule with handle %d in it is not the plugin's for this container", r.handle)
		}
	}
	if f.s.mapped[c.place] {
		return "a verdict map leads to it"
	}
	return ""
}
