package testnode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ipLink is what `ip -j -d link` and `ip -j addr` say of a link, as far as it stays the same until somebody changes it.
type ipLink struct {
	Index  int      `json:"ifindex"`
	Name   string   `json:"ifname"`
	Flags  []string `json:"flags"`
	MTU    int      `json:"mtu"`
	MAC    string   `json:"address"`
	Master string   `json:"master"`
	Parent string   `json:"link"`
	Peer   int      `json:"link_index"` // a veth's, when it is in another network namespace
	Info   struct {
		Kind string `json:"info_kind"`
	} `json:"linkinfo"`
	Addresses []ipAddress `json:"addr_info"`
}

type ipAddress struct {
	Local  string `json:"local"`
	Peer   string `json:"address"`
	Prefix int    `json:"prefixlen"`
	Scope  string `json:"scope"`
}

func (v View) links() ([]string, error) {
	links, err := v.ipLinks("-d", "link")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, l := range links {
		lines = append(lines, l.String())
	}
	return lines, nil
}

// String is the link as a snapshot shows it. The ifindex is in it: a link that was removed and made again under the
// same name is another link.
func (l ipLink) String() string {
	words := []string{"link", l.Name, "index", fmt.Sprint(l.Index)}
	add := func(key, value string) {
		if value != "" {
			words = append(words, key, value)
		}
	}
	add("kind", l.Info.Kind)
	add("master", l.Master)
	add("parent", l.Parent)
	add("mac", l.MAC)
	add("mtu", fmt.Sprint(l.MTU))
	if slices.Contains(l.Flags, "UP") {
		words = append(words, "up")
	}
	return strings.Join(words, " ")
}

// addresses leaves out link-local IPv6, which the kernel makes itself once it has seen a carrier.
func (v View) addresses() ([]string, error) {
	links, err := v.ipLinks("addr")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, l := range links {
		for _, a := range l.Addresses {
			if a.Scope == "link" && strings.HasPrefix(a.Local, "fe80:") {
				continue
			}
			line := fmt.Sprintf("addr %s %s/%d scope %s", l.Name, a.Local, a.Prefix, a.Scope)
			if a.Peer != "" {
				line += " peer " + a.Peer
			}
			lines = append(lines, line)
		}
	}
	return lines, nil
}

func (v View) ipLinks(args ...string) ([]ipLink, error) {
	out, err := v.run(append([]string{"ip", "-j"}, args...)...)
	if err != nil {
		return nil, err
	}
	var links []ipLink
	if len(out) == 0 { // a namespace without any
		return nil, nil
	}
	if err := json.Unmarshal(out, &links); err != nil {
		return nil, fmt.Errorf("reading what ip -j %s says: %w", strings.Join(args, " "), err)
	}
	return links, nil
}
