package attachment

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Result is a tolerant reading of a prevResult. What the field sends is often
// not what the spec says (entries without sandbox, numbers in "mac", indexes out of
// range, the 0.1.0 shape): whatever cannot be understood is left out, and
// nothing here is an error. The raw JSON, not this, is what is passed on.
type Result struct {
	Interfaces []Interface
	IPs        []netip.Addr
}

// Interface is one entry of a result's interfaces.
type Interface struct {
	Name    string
	MAC     string
	Sandbox string // empty: on the host, or left out by the plugin
}

// ParseResult reads a prevResult of any version.
func ParseResult(raw json.RawMessage) Result {
	var loose struct {
		Interfaces []json.RawMessage `json:"interfaces"`
		IPs        []json.RawMessage `json:"ips"`
		IP4        json.RawMessage   `json:"ip4"` // 0.1.0 and 0.2.0
		IP6        json.RawMessage   `json:"ip6"`
	}
	var out Result
	// A field of the wrong type leaves the others filled in.
	_ = json.Unmarshal(raw, &loose)
	for _, e := range loose.Interfaces {
		var i struct{ Name, Mac, Sandbox string }
		_ = json.Unmarshal(e, &i)
		if i.Name != "" {
			out.Interfaces = append(out.Interfaces, Interface{Name: i.Name, MAC: strings.ToLower(i.Mac), Sandbox: i.Sandbox})
		}
	}
	for _, e := range loose.IPs {
		var ip struct{ Address string }
		_ = json.Unmarshal(e, &ip)
		out.addIP(ip.Address)
	}
	for _, e := range []json.RawMessage{loose.IP4, loose.IP6} {
		var ip struct{ IP string }
		_ = json.Unmarshal(e, &ip)
		out.addIP(ip.IP)
	}
	return out
}

// Tables are those to which the result says that the pod's rules lead: the AWS VPC CNI writes the number of an
// interface's table where its MAC belongs, 254 for main. None means that nothing is said.
func (r Result) Tables() (out []uint32) {
	for _, i := range r.Interfaces {
		n, err := strconv.ParseUint(i.MAC, 10, 32)
		if err == nil && i.MAC[0] != '0' && strings.HasPrefix(i.Sandbox, "/") {
			out = append(out, uint32(n))
		}
	}
	return out
}

// BranchLinks name the vlan links that are this pod's alone, by the result's word: for a pod of a branch ENI the AWS
// VPC CNI writes the vlan id where the MAC of an interface belongs that is called dummy…, has no sandbox and is no device.
func (r Result) BranchLinks() (out []string) {
	for _, i := range r.Interfaces {
		n, err := strconv.ParseUint(i.MAC, 10, 12)
		if err == nil && n > 0 && i.MAC[0] != '0' && n < 4095 && i.Sandbox == "" && strings.HasPrefix(i.Name, "dummy") {
			out = append(out, branchPrefix+i.MAC)
		}
	}
	return out
}

// addIP keeps addresses that can belong to one pod alone: Multus delegates
// without IPAM send 0.0.0.0/32.
func (r *Result) addIP(s string) {
	s, _, _ = strings.Cut(s, "/")
	a, err := netip.ParseAddr(s)
	if err != nil {
		return
	}
	a = a.Unmap().WithZone("")
	if PodAddress(a) && !slices.Contains(r.IPs, a) {
		r.IPs = append(r.IPs, a)
	}
}

// PodAddress reports whether an address can identify one attachment.
func PodAddress(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast() && !a.IsLinkLocalUnicast()
}
