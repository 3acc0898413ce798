package netfilter

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"

	"github.com/backstop-cni/backstop/attachment"
)

// Lengths that the plugins cut names and comments to.
const (
	chainLen       = 28  // pkg/utils/utils.go, maxChainLength
	hashLen        = 16  // pkg/ip/ipmasq_nftables_linux.go, hashForNetwork and hashForInstance
	masqCommentLen = 128 // knftables.CommentLengthMax
	dnatCommentLen = 255 // portmap/utils.go, trimComment
)

// Tables and chains that serve all containers: what the plugins make in them is removed, they are not.
const (
	tableNat      = "nat"
	tableHostPort = "cni_hostport"
	tableMasq     = "cni_plugins_masquerade"
	chainMasq     = "masq_checks"
	chainDNAT     = "CNI-HOSTPORT-DNAT"
	chainPost     = "POSTROUTING"
	chainPre      = "PREROUTING"
)

// hostPortChains are the chains of portmap's table that hold rules of containers.
var hostPortChains = []string{"hostports", "hostip_hostports", "masquerading"}

// place is where a chain is; with a rule's handle it names the rule.
type place struct{ family, table, chain string }

// ownChain is a chain that a plugin makes for one container: it is reached by rules in the entry chain that have the
// comment. Rules in it have none or the inner comment.
type ownChain struct {
	place
	entry          string
	comment, inner string
	// elsewhere says that the addresses in it are of another IPAM than the attachment's.
	elsewhere bool
}

// ownChains gives the chains of an attachment's container, where a later one may be reached from an earlier one. The
// sources are those of github.com/containernetworking/plugins v1.10.0 and amazon-vpc-cni-k8s v1.23.2.
func ownChains(k attachment.Key) []ownChain {
	name := fmt.Sprintf("name: %q id: %q", k.Network, k.ContainerID) // pkg/utils/utils.go, FormatComment
	dnat := fmt.Sprintf("dnat name: \"%s\" id: \"%s\"", k.Network, k.ContainerID)
	if len(dnat) > dnatCommentLen {
		dnat = dnat[:dnatCommentLen-2] + "..."
	}
	masq, port := chainName("CNI-", k), chainName("CNI-DN-", k)
	spoof, of := "cni-br-iface-"+k.ContainerID+"-"+k.IfName, "macspoofchk-"+k.ContainerID+"-"+k.IfName // pkg/link/spoofcheck.go
	return []ownChain{
		{place{"ip", tableNat, masq}, chainPost, name, name, false},
		{place{"ip6", tableNat, masq}, chainPost, name, name, false},
		{place{"ip", tableNat, port}, chainDNAT, dnat, "", false},
		{place{"ip6", tableNat, port}, chainDNAT, dnat, "", false},
		{place{"ip", tableNat, chainName("CNI-E4-", k)}, chainPost, name, name, true}, // egress-cni's main.go
		{place{"ip6", tableNat, chainName("CNI-E6-", k)}, chainPost, name, name, true},
		{place{"bridge", tableNat, spoof}, chainPre, of, of, false},
		{place{"bridge", tableNat, spoof + "-mac"}, spoof, of, of, false},
	}
}

// chainName is pkg/utils/utils.go, MustFormatChainNameWithPrefix.
func chainName(prefix string, k attachment.Key) string {
	return (prefix + hash(k.Network+k.ContainerID))[:chainLen]
}

// masqComment is the comment of an attachment's rules in the chain of pkg/ip/ipmasq_nftables_linux.go.
func masqComment(k attachment.Key) string {
	c := fmt.Sprintf("%s-%s, net: %s, if: %s, id: %s", hash(k.Network)[:hashLen], hash(k.IfName + ":" + k.ContainerID)[:hashLen],
		k.Network, k.IfName, k.ContainerID)
	return c[:min(len(c), masqCommentLen)]
}

func hash(of string) string {
	sum := sha512.Sum512([]byte(of))
	return hex.EncodeToString(sum[:])
}
