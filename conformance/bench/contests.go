package main

import "fmt"

// contestant is one side of a contest. A round is timed from the start of run to its end; before makes what run
// needs, untimed, and may be nil.
type contestant struct {
	name   string
	before func(p pod) error
	run    func(p pod) error
}

// contest is a row of the table: a against b, in a node in a certain state.
type contest struct {
	name  string
	state state
	a, b  contestant
	bar   float64 // the most that a may take of b's time; 0: only to look at
}

// states of the node, in the order in which they are made.
var (
	empty = state{name: "0 records"}
	full  = state{name: "1,000 records, 2,000 rules", records: 1000}
)

// contests are all rows.
func contests(n *node) []contest {
	backstop := plugin{name: "backstop", config: map[string]any{}}
	away := plugin{name: "backstop", config: map[string]any{
		"primary": map[string]any{"probe": []string{"unix:///run/nobody-listens"}},
	}}
	tuning := plugin{name: "tuning", config: map[string]any{}}

	var all []contest
	for _, c := range []struct {
		state    state
		add, del float64
	}{
		{empty, 1.5, 1.5},
		{full, 1.8, 2.0},
	} {
		all = append(all,
			contest{"ADD", c.state, backstop.adding(), tuning.adding(), c.add},
			contest{"DEL, left to the primary", c.state, backstop.deleting(), tuning.deleting(), c.del},
			contest{"DEL, pod torn down", c.state, away.deletingAnew(n), tuning.deleting(), 0})
	}
	return all
}

// adding is a contestant whose ADD is timed.
func (p plugin) adding() contestant {
	return contestant{p.name, nil, func(pod pod) error { return p.call("ADD", pod) }}
}

// deleting is one whose DEL is timed, after an ADD that is not.
func (p plugin) deleting() contestant {
	return contestant{p.name,
		func(pod pod) error { return p.call("ADD", pod) },
		func(pod pod) error { return p.call("DEL", pod) }}
}

// deletingAnew is deleting for a DEL that removes the pod's state, which therefore has to be made first.
func (p plugin) deletingAnew(n *node) contestant {
	c := p.deleting()
	add := c.before
	c.before = func(pod pod) error {
		if err := n.dress(pod); err != nil {
			return fmt.Errorf("dressing pod %d: %w", pod, err)
		}
		return add(pod)
	}
	return c
}
