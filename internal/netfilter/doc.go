// Package netfilter finds and removes what CNI plugins put into the host's nftables for one container each: egress-cni,
// portmap, the masquerading of ptp and bridge, and bridge's macspoofchk. Nothing is recorded of it at ADD: the
// names and comments hold the network and the container, or a hash of both, so that it can be told from them whose it is.
//
// It talks netlink, which iptables-nft and ebtables-nft cannot be told from. What the legacy iptables hold is not seen, see
// Legacy. The plugin's binary must not import it.
package netfilter
