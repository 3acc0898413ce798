package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// details are the words of a snapshot's line that tell things apart for a program, and a reader can do without.
var details = regexp.MustCompile(` (index|mac|mtu) \S+`)

// sideBySide shows which things a node had at several times: a line for each that came or went, a column for each
// time. What was there all the time is only counted.
func sideBySide(times []string, snapshots []testnode.Snapshot) string {
	var things testnode.Snapshot
	for _, s := range snapshots {
		things = append(things, s.Minus(things)...)
	}
	slices.Sort(things)

	var rows [][]string
	always, width := 0, 0
	for _, thing := range things {
		row, missing := []string{details.ReplaceAllString(thing, "")}, false
		for _, s := range snapshots {
			mark := "yes"
			if !slices.Contains(s, thing) {
				mark, missing = "-", true
			}
			row = append(row, mark)
		}
		if !missing {
			always++
			continue
		}
		width = max(width, len(row[0]))
		rows = append(rows, row)
	}

	var b strings.Builder
	line := func(thing string, marks []string) {
		fmt.Fprintf(&b, "     %-*s", width, thing)
		for _, mark := range marks {
			fmt.Fprintf(&b, "  %9s", mark)
		}
		b.WriteString("\n")
	}
	line("", times)
	for _, row := range rows {
		line(row[0], row[1:])
	}
	fmt.Fprintf(&b, "     (and %d things of the node itself, there all the time)\n", always)
	return b.String()
}
