package main

import "fmt"

// contestant is one side of a contest. A round is timed from the start of run to its end; before makes what run
// needs, after takes away what it left, both untimed, and may be nil.
type contestant struct {
	name   string
	before func(p pod) error
	run    func(p pod) error
	after  func(p pod) error
}

// contest is a row of the table: a against b, in a node in a certain state.
type contest struct {
	name  string
	state state
	a, b  contestant
	bar   float64 // the most that a may take of b's time; 0: only to look at
}

// states of the node, in the order in which they are made: attachments that are there beside the measured ones, each with
// a netns, a veth, a route, two rules and a record.
const (
	empty state = 0
	full  state = 1000
)

var states = []state{empty, 100, 300, full}

// contests are all rows.
func contests(n *node) []contest {
	backstop := plugin{name: "backstop"}
	away := plugin{name: "backstop", config: map[string]any{
		"primary": map[string]any{"probe": []string{"unix:///run/nobody-listens"}},
	}}
	tuning := plugin{name: "tuning"}
	portmap := plugin{name: "portmap", config: map[string]any{
		"runtimeConfig": map[string]any{"portMappings": []map[string]any{{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}}},
	}}

	all := []contest{
		{"ADD", empty, backstop.adding(), portmap.addingAnew(), 0},
		{"DEL, left to the primary", empty, backstop.deleting(), portmap.deleting(), 0},
	}
	for _, c := range []struct {
		state    state
		add, del float64
	}{
		{empty, 1.5, 1.5}, {100, 0, 0}, {300, 0, 0}, {full, 1.8, 2.0},
	} {
		all = append(all,
			contest{"ADD", c.state, backstop.adding(), tuning.adding(), c.add},
			contest{"DEL, left to the primary", c.state, backstop.deleting(), tuning.deleting(), c.del},
			contest{"DEL, pod torn down", c.state, away.deletingAnew(n), tuning.deleting(), 0})
	}
	return all
}

// cost is what a pod pays.
type cost struct{ rows [][]string }

func (g *cost) at(n *node, r *report, o options, s state) error {
	for _, c := range contests(n) {
		if c.state != s {
			continue
		}
		got, err := c.measure(o.rounds, n.reset)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		g.rows = append(g.rows, r.row(c, got))
	}
	return nil
}

func (g *cost) table() table {
	return table{
		title: "What a pod pays", header: []string{"call", "attachments in the node", "backstop", "against", "ratio", "bar", ""}, rows: g.rows,
		note: "Medians of processes run in turn. `tuning` with nothing to do is the floor of a chained plugin in Go; `portmap` with one port is what\n" +
			"many nodes run for each such pod today. The attachments in the node are real: a netns, a veth, a route and two rules each. `tuning` does not\n" +
			"look at them; what grows for an ADD is the kernel's dump of all rules.",
	}
}

func (r *report) row(c contest, got result) []string {
	f := times(got.a, got.b)
	bar, verdict := r.judge(fmt.Sprintf("%s beside %d attachments", c.name, c.state), f, c.bar)
	return []string{c.name, fmt.Sprint(int(c.state)), ms(got.a), c.b.name + " " + ms(got.b), ratio(f), bar, verdict}
}

// adding is a contestant whose ADD is timed.
func (p plugin) adding() contestant {
	return contestant{name: p.name, run: func(pod pod) error { return p.call("ADD", pod) }}
}

// addingAnew is adding for a plugin that must not find what it made before.
func (p plugin) addingAnew() contestant {
	c := p.adding()
	c.after = func(pod pod) error { return p.call("DEL", pod) }
	return c
}

// deleting is one whose DEL is timed, after an ADD that is not.
func (p plugin) deleting() contestant {
	return contestant{name: p.name,
		before: func(pod pod) error { return p.call("ADD", pod) },
		run:    func(pod pod) error { return p.call("DEL", pod) }}
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
