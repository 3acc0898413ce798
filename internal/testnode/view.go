package testnode

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// View is a way to look at a node. The zero value looks at its links, addresses, routes and rules in all tables and
// both families, and permanent neighbours.
type View struct {
	Netns     string // a named network namespace instead of the node's own
	OnlyIPv4  bool   // no IPv6 routes and rules: the kernel may have none
	Netfilter bool   // the nftables rule set, and the nat and filter tables as iptables shows them, too
}

// Take looks at the node once.
func (v View) Take() (Snapshot, error) {
	readers := []func() ([]string, error){v.links, v.addresses, v.neighbours}
	families := []string{"4", "6"}
	if v.OnlyIPv4 {
		families = families[:1]
	}
	for _, family := range families {
		readers = append(readers,
			func() ([]string, error) { return v.routes(family) },
			func() ([]string, error) { return v.rules(family) })
	}
	if v.Netfilter {
		readers = append(readers, v.nftables, v.iptables)
	}
	var all Snapshot
	for _, read := range readers {
		lines, err := read()
		if err != nil {
			return nil, err
		}
		all = append(all, lines...)
	}
	slices.Sort(all)
	return all, nil
}

var (
	// kernelMade are the routes that the kernel adds and removes by itself, as carriers and addresses come and go.
	kernelMade = regexp.MustCompile(`\bproto kernel\b|^multicast |^(\w+ )?(ff00::/8|fe80::/64) `)
	// passing are the words of a route that change without anybody's doing.
	passing = regexp.MustCompile(` (linkdown|dead|expires \S+)\b`)
)

func (v View) routes(family string) ([]string, error) {
	out, err := v.run("ip", "-"+family, "route", "show", "table", "all")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, route := range textLines(out) {
		if !kernelMade.MatchString(route) {
			lines = append(lines, "route"+family+" "+passing.ReplaceAllString(route, ""))
		}
	}
	return lines, nil
}

func (v View) rules(family string) ([]string, error) {
	out, err := v.run("ip", "-"+family, "rule")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, rule := range textLines(out) {
		lines = append(lines, "rule"+family+" "+rule)
	}
	return lines, nil
}

func (v View) neighbours() ([]string, error) {
	out, err := v.run("ip", "neigh", "show", "nud", "permanent")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, neighbour := range textLines(out) {
		lines = append(lines, "neigh "+neighbour)
	}
	return lines, nil
}

// run runs a program in the view's network namespace and returns what it printed.
func (v View) run(args ...string) ([]byte, error) {
	if v.Netns != "" {
		args = append([]string{"ip", "netns", "exec", v.Netns}, args...)
	}
	program, err := lookPath(args[0])
	if err != nil {
		return nil, fmt.Errorf("looking at the node: %w", err)
	}
	var stderr strings.Builder
	cmd := exec.Command(program, args[1:]...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("looking at the node with %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// textLines are the lines that are not empty, each with single spaces between its words.
func textLines(out []byte) []string {
	var lines []string
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 0 {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return lines
}
