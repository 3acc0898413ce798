package netfilter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Conn is a connection to the nftables of the network namespace that the thread was in when it was opened.
type Conn struct{ nft *nftables.Conn }

// Open opens one. The calling thread has to be in the host's namespace.
func Open() (*Conn, error) {
	c, err := nftables.New(nftables.AsLasting())
	if noNftables(err) {
		return &Conn{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	return &Conn{nft: c}, nil
}

// Close closes it.
func (c *Conn) Close() {
	if c.nft != nil {
		_ = c.nft.CloseLasting()
	}
}

var families = map[string]nftables.TableFamily{
	"ip": nftables.TableFamilyIPv4, "ip6": nftables.TableFamilyIPv6, "inet": nftables.TableFamilyINet, "bridge": nftables.TableFamilyBridge,
}

// readTries bounds how often a ruleset is read that somebody changes meanwhile.
const readTries = 10

// ErrBusy says that the ruleset was changed during each reading of it.
var ErrBusy = errors.New("the nftables ruleset was changed during each reading of it")

// Read reads the tables that plugins write to, as they were at one time: what was changed in between is read again. A
// kernel without nftables has none.
func (c *Conn) Read() (*Ruleset, error) {
	for range readTries {
		before, err := generation()
		if noNftables(err) || c.nft == nil {
			return &Ruleset{}, nil
		}
		var s *Ruleset
		if err == nil {
			s, err = c.read()
		}
		after, gerr := generation()
		if err = errors.Join(err, gerr); err != nil && before == after {
			return nil, fmt.Errorf("read nftables: %w", err)
		}
		if err == nil && before == after {
			return s, nil
		}
	}
	return nil, ErrBusy
}

func (c *Conn) read() (*Ruleset, error) {
	s := &Ruleset{chains: map[place][]rule{}, mapped: map[place]bool{}}
	chains, err := c.nft.ListChains()
	if err != nil {
		return nil, fmt.Errorf("list chains: %w", err)
	}
	for _, t := range tables {
		table := &nftables.Table{Name: t.table, Family: families[t.family]}
		there := false
		for _, ch := range chains {
			if ch.Table.Name != t.table || ch.Table.Family != table.Family {
				continue
			}
			there = true
			rules, err := c.nft.GetRules(table, ch)
			if err != nil {
				return nil, fmt.Errorf("list rules of %s %s %s: %w", t.family, t.table, ch.Name, err)
			}
			p := place{t.family, t.table, ch.Name}
			s.chains[p] = []rule{}
			for _, r := range rules {
				s.chains[p] = append(s.chains[p], understand(r))
			}
		}
		if there {
			if err := c.readMaps(s, t, table); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// readMaps notes the chains that maps of a table lead to: none of the plugins makes any, people may.
func (c *Conn) readMaps(s *Ruleset, t place, table *nftables.Table) error {
	sets, err := c.nft.GetSets(table)
	if err != nil {
		return fmt.Errorf("list sets of %s %s: %w", t.family, t.table, err)
	}
	for _, set := range slices.DeleteFunc(sets, func(s *nftables.Set) bool { return !s.IsMap }) {
		elements, err := c.nft.GetSetElements(set)
		if err != nil {
			return fmt.Errorf("list map %s of %s %s: %w", set.Name, t.family, t.table, err)
		}
		for _, e := range elements {
			if chain := verdictChain(e.Val); chain != "" {
				s.mapped[place{t.family, t.table, chain}] = true
			}
		}
	}
	return nil
}

// verdictChain takes the chain out of a map's verdict, which the library hands on as it came (NFTA_VERDICT_CHAIN). What
// is no verdict gives nothing, or the name of no chain.
func verdictChain(value []byte) string {
	ad, err := netlink.NewAttributeDecoder(value)
	if err != nil {
		return ""
	}
	for ad.Next() {
		if ad.Type() == unix.NFTA_VERDICT_CHAIN {
			return ad.String()
		}
	}
	return ""
}

// generation is the ruleset's: it changes with every change of it (NFT_MSG_GETGEN). The library has no such question.
func generation() (uint32, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return 0, fmt.Errorf("open netfilter netlink: %w", err)
	}
	defer conn.Close()
	got, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN, Flags: netlink.Request},
		Data:   []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, 0},
	})
	if err != nil {
		return 0, fmt.Errorf("ask for the ruleset's generation: %w", err)
	}
	for _, m := range got {
		ad, err := netlink.NewAttributeDecoder(m.Data[min(4, len(m.Data)):])
		if err != nil {
			return 0, fmt.Errorf("read the ruleset's generation: %w", err)
		}
		for ad.Next() {
			if ad.Type() == unix.NFTA_GEN_ID && len(ad.Bytes()) == 4 {
				return uint32(ad.Bytes()[0])<<24 | uint32(ad.Bytes()[1])<<16 | uint32(ad.Bytes()[2])<<8 | uint32(ad.Bytes()[3]), nil
			}
		}
	}
	return 0, errors.New("the kernel's answer has no generation")
}

// noNftables recognises a kernel without netfilter's netlink, or without nftables in it.
func noNftables(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP)
}
