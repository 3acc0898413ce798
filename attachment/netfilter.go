package attachment

import "fmt"

// Netfilter is a chain, or a rule in a chain that serves others too, which a plugin made for one container in the host's
// nftables (iptables-nft and ebtables-nft keep theirs there, too).
type Netfilter struct {
	Family  string `json:"family"` // ip, ip6, inet, bridge: nft(8)
	Table   string `json:"table"`
	Chain   string `json:"chain"`
	Handle  uint64 `json:"handle,omitempty"` // the rule's; 0: the chain itself, with what is in it
	Jump    string `json:"jump,omitempty"`   // the chain that the rule leads to
	Comment string `json:"comment,omitempty"`
}

// String is it in the words of nft(8), as for `nft delete`.
func (n Netfilter) String() string {
	if n.Handle == 0 {
		return fmt.Sprintf("chain %s %s %s", n.Family, n.Table, n.Chain)
	}
	s := fmt.Sprintf("rule %s %s %s handle %d", n.Family, n.Table, n.Chain, n.Handle)
	if n.Jump != "" {
		s += " jump " + n.Jump
	}
	return s
}
