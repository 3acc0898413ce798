package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// result is what came of one cut.
type result struct {
	boot                                 time.Duration
	added, deleted, lost, undone, broken int
	faults                               []string
}

// judge compares what was acknowledged before the cut with what is there after it.
func (c *result) judge(before, after [][]string) {
	whole := false
	began, gone, state, at := map[string]bool{}, map[string]bool{}, map[string]string{}, map[string]string{}
	for _, line := range after {
		switch {
		case len(line) == 3 && line[0] == there && at[line[1]] != "attached":
			at[line[1]] = line[2]
		case len(line) == 3 && line[0] == later:
			state[line[1]] = line[2]
		case len(line) == 1 && line[0] == sound:
			whole = true
		}
	}
	for _, line := range before {
		switch {
		case line[0] == "STOPPED":
			c.fault("before the cut: %s", strings.Join(line, " "))
		case len(line) == 2 && line[0] == deleting:
			began[line[1]] = true
		case len(line) == 2 && line[0] == deleted:
			gone[line[1]] = true
		}
	}
	for _, line := range before {
		if len(line) != 2 || line[0] != added {
			continue
		}
		c.added++
		if whole && !began[line[1]] && at[line[1]] != "attached" {
			c.lost++
			c.fault("the ADD of %s was acknowledged, and is %q after the cut", line[1], at[line[1]])
		}
	}
	if !whole {
		c.broken = 1
		c.fault("the journal is not sound after the cut: %v", after)
	}
	for id := range gone {
		c.deleted++
		if state[id] == "attached" {
			c.undone++
			c.fault("the DEL of %s was acknowledged, and it is attached after the cut", id)
		}
	}
}

func (c *result) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// results are those of all cuts.
type results []result

func (r results) faulty() bool {
	return slices.ContainsFunc(r, func(c result) bool { return len(c.faults) > 0 })
}

func (r results) String() string {
	var sum result
	var boots []time.Duration
	for _, c := range r {
		sum.added, sum.deleted, sum.lost, sum.undone, sum.broken = sum.added+c.added, sum.deleted+c.deleted, sum.lost+c.lost, sum.undone+c.undone, sum.broken+c.broken
		boots = append(boots, c.boot)
	}
	slices.Sort(boots)
	var median time.Duration
	if len(boots) > 0 {
		median = boots[len(boots)/2]
	}
	return fmt.Sprintf(`| cuts | ADDs acknowledged | lost | DELs acknowledged | undone | journal unreadable | median time to first boot |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| %d | %d | %d | %d | %d | %d | %.1f s |
`, len(r), sum.added, sum.lost, sum.deleted, sum.undone, sum.broken, median.Seconds())
}
