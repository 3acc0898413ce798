package testnode

import (
	"regexp"
	"strings"
)

// counters are the packet counts that nft and iptables-save print; they change with traffic alone.
var counters = regexp.MustCompile(` packets \d+ bytes \d+| \[\d+:\d+\]`)

// nftables is the node's rule set with one line for each table, chain, set and rule, each naming what it stands in.
func (v View) nftables() ([]string, error) {
	out, err := v.run("nft", "list", "ruleset")
	if err != nil {
		return nil, err
	}
	return flattenRuleset(out), nil
}

// flattenRuleset turns nft's nested text into lines that mean the same alone.
func flattenRuleset(ruleset []byte) []string {
	var lines, within []string
	for _, line := range textLines(ruleset) {
		line = counters.ReplaceAllString(line, "")
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "}":
			within = within[:len(within)-1]
		case strings.HasSuffix(line, " {"):
			within = append(within, strings.TrimSuffix(line, " {"))
			lines = append(lines, "nft "+strings.Join(within, " "))
		default:
			lines = append(lines, "nft "+strings.Join(within, " ")+": "+line)
		}
	}
	return lines
}

// iptables is what iptables-save shows of the nat and filter tables, for both families.
func (v View) iptables() ([]string, error) {
	var lines []string
	for _, program := range []string{"iptables", "ip6tables"} {
		for _, table := range []string{"nat", "filter"} {
			out, err := v.run(program+"-save", "-t", table)
			if err != nil {
				return nil, err
			}
			for _, line := range textLines(out) {
				if line[0] == ':' || line[0] == '-' { // a chain or a rule
					lines = append(lines, program+" "+table+" "+counters.ReplaceAllString(line, ""))
				}
			}
		}
	}
	return lines, nil
}
