package testnode

import (
	"regexp"
	"slices"
	"strings"
)

// Snapshot is what a node's network looked like: one line for each thing in it, sorted. A line begins with the kind
// of the thing: link, addr, route4, route6, rule4, rule6, neigh, nft, iptables or ip6tables. Equal lines are
// different things (two identical rules, say) and count each.
type Snapshot []string

// ParseSnapshot reads what String wrote.
func ParseSnapshot(text string) Snapshot {
	return Snapshot(textLines([]byte(text)))
}

// String is the snapshot as text, one thing a line.
func (s Snapshot) String() string {
	if len(s) == 0 {
		return ""
	}
	return strings.Join(s, "\n") + "\n"
}

// Matching is the part of the snapshot whose lines match.
func (s Snapshot) Matching(pattern *regexp.Regexp) Snapshot {
	var part Snapshot
	for _, line := range s {
		if pattern.MatchString(line) {
			part = append(part, line)
		}
	}
	return part
}

// Minus is what s has and other has not.
func (s Snapshot) Minus(other Snapshot) Snapshot {
	left := slices.Clone(other)
	var more Snapshot
	for _, line := range s {
		if i := slices.Index(left, line); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else {
			more = append(more, line)
		}
	}
	return more
}

// Diff is how to get from one snapshot to another: a line with "-" for each thing that went, with "+" for each that
// came. It is empty when the two are equal.
func Diff(from, to Snapshot) string {
	var b strings.Builder
	for _, gone := range from.Minus(to) {
		b.WriteString("- " + gone + "\n")
	}
	for _, came := range to.Minus(from) {
		b.WriteString("+ " + came + "\n")
	}
	return b.String()
}
