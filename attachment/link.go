package attachment

import (
	"fmt"
	"strings"
)

// Link is a network device. Indexes count in the network namespace it was read
// in.
type Link struct {
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Kind   string `json:"kind,omitempty"` // IFLA_INFO_KIND; empty for physical devices
	MAC    string `json:"mac,omitempty"`
	MTU    int    `json:"mtu,omitempty"`
	Master int    `json:"master,omitempty"` // IFLA_MASTER: bridge, bond, vrf
	// Parent is IFLA_LINK: the peer of a veth, the lower device of a vlan. It
	// counts in ParentNetnsID's namespace, or in this one when that is -1.
	Parent        int `json:"parent,omitempty"`
	ParentNetnsID int `json:"parentNetnsID"`
	// Alias is IFLA_IFALIAS. host-device keeps the host's name of a device there while it is in a pod.
	Alias string `json:"alias,omitempty"`
}

// removable are the kinds that exist for one attachment when they are its own:
// everything else (bridges, vxlan, physical devices …) is shared, whatever a prevResult says.
var removable = map[string]bool{"veth": true, "ifb": true}

// branchPrefix begins the names of the vlan links that the AWS VPC CNI makes for branch ENIs, each for one pod; the vlan id
// follows. Other vlans are the node's.
const branchPrefix = "vlan.eth."

// Removable reports whether a link of this kind may be deleted with an
// attachment at all. Physical devices have no kind and never are.
func (l Link) Removable() bool {
	return removable[l.Kind] || l.Kind == "vlan" && strings.HasPrefix(l.Name, branchPrefix)
}

// goesWithPod reports whether the kernel removes the link with the pod's network
// namespace, in which a veth's other end is.
func (l Link) goesWithPod() bool { return l.Kind == "veth" }

// Same reports whether both are the same device: index and kind, and the name
// or the MAC. A name alone proves nothing: AWS derives veth names from the pod's name, so the next
// pod of a StatefulSet has the same one. A MAC decides only where it is unique, see SameByMAC.
func (l Link) Same(o Link) bool {
	return l.Index == o.Index && l.Kind == o.Kind && (l.Name == o.Name || l.SameByMAC(o))
}

// SameByMAC reports equal MACs. The caller must know that no other link of the
// node has it (Calico gives every host veth ee:ee:ee:ee:ee:ee).
func (l Link) SameByMAC(o Link) bool { return l.MAC != "" && l.MAC == o.MAC }

func (l Link) String() string {
	return fmt.Sprintf("%s (%s, index %d)", l.Name, or(l.Kind, "physical"), l.Index)
}
