package kernel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// list gives the entries of JSON listings that one program prints.
func (n *netns) list(program string, listings ...string) [][]string {
	n.t.Helper()
	out, err := n.run(strings.Fields(program), strings.Join(listings, "\n")+"\n")
	if err != nil {
		n.t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(out))
	var all [][]string
	for range listings {
		var entries []json.RawMessage
		if err := d.Decode(&entries); err != nil {
			n.t.Fatalf("%s: %v\n%s", program, err, out)
		}
		var lines []string
		for _, e := range entries {
			lines = append(lines, string(e))
		}
		all = append(all, lines)
	}
	return all
}

// everything is what the listings of these kinds show (all of them, if none is named), each entry with the listing it
// is from. What the kernel makes by itself, and states that it changes by itself, are left out.
func (n *netns) everything(kinds ...string) []string {
	n.t.Helper()
	var all []string
	for _, l := range []struct {
		program  string
		kinds    []string
		listings []string
	}{
		{"ip -j", []string{"link", "neigh"}, []string{"link", "neigh show nud permanent"}},
		{"ip -j -d -4", []string{"rule4", "route4"}, []string{"rule", "route show table all"}},
		{"ip -j -d -6", []string{"rule6", "route6"}, []string{"rule", "route show table all"}},
		{"bridge -j", []string{"fdb"}, []string{"fdb show"}},
	} {
		wanted := func(kind string) bool { return len(kinds) == 0 || slices.Contains(kinds, kind) }
		if !slices.ContainsFunc(l.kinds, wanted) {
			continue
		}
		for i, entries := range n.list(l.program, l.listings...) {
			for _, e := range entries {
				if wanted(l.kinds[i]) && !ofTheKernel[l.kinds[i]].MatchString(e) {
					all = append(all, l.kinds[i]+" "+n.lasting(l.kinds[i], e))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// never matches nothing.
var never = regexp.MustCompile(`$^`)

// ofTheKernel are the entries that it makes by itself: routes, a device's own forwarding list, and what was learned.
var ofTheKernel = map[string]*regexp.Regexp{
	"route4": regexp.MustCompile(`"protocol":"kernel"|"multicast"`), "route6": regexp.MustCompile(`"protocol":"kernel"|"multicast"`),
	"fdb":  regexp.MustCompile(`"flags":\["self"\]|"state":""`),
	"link": never, "neigh": never, "rule4": never, "rule6": never,
}

var detached = regexp.MustCompile(`"[io]if_detached":null,`)

// lasting leaves out of an entry what changes without anybody's doing.
func (n *netns) lasting(kind, entry string) string {
	if kind != "link" {
		return detached.ReplaceAllString(entry, "")
	}
	var l struct {
		Index  int    `json:"ifindex"`
		Name   string `json:"ifname"`
		Master string `json:"master"`
	}
	if err := json.Unmarshal([]byte(entry), &l); err != nil {
		n.t.Fatal(err)
	}
	return fmt.Sprint(l.Index, " ", l.Name, " ", l.Master)
}

// minus is what a has and b has not; equal lines count each.
func minus(a, b []string) []string {
	b = slices.Clone(b)
	var left []string
	for _, x := range a {
		if i := slices.Index(b, x); i >= 0 {
			b = slices.Delete(b, i, i+1)
		} else {
			left = append(left, x)
		}
	}
	return left
}
