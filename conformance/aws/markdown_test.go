package aws

import (
	"fmt"
	"slices"
	"strings"
)

const preface = `# What the AWS VPC CNI leaves, without and with backstop

Written by ` + "`make conformance-aws`" + `: the real aws-cni and egress-cni (v1.23.2), called by cnitool in a throw-away node, against
a daemon over the module's own datastore (marked *datastore*) or a scripted one. What stays is what ` + "`ip`" + ` and the
iptables programs show beyond what they showed before the first ADD, when the daemon is back and, with backstop, its sweep and replay have run. A pod's
netns is gone then, and its veth with it. **Nothing** says that both the node and the datastore are as before. *Before that* is
what stays when the pod is gone and the daemon is not back yet, or no sweep has run.
`

const head = `
| situation | DEL | stays without backstop | with, ` + "`unreachable`" + ` | with, ` + "`always`" + ` |
| --- | --- | --- | --- | --- |
`

func report(rows []row, all [][]outcome) string { return preface + table(rows, all) + notes }

const notes = `
Of an ADD that failed backstop knows nothing: it is last in the list and was not called. What aws-cni left then goes with
the pod's netns where it is a veth; where it was a later plugin whose ADD failed, and the daemon is away at the DEL, the pod's rules stay.
And what aws-cni itself takes from a live pod, backstop cannot keep: at DEL it is called first. It can only say so.

Not in the table, and not yet removed by backstop: the NAT chains of egress-cni and portmap where the DEL never came or came
without a netns. They stay with backstop as they do without.
`

func table(rows []row, all [][]outcome) string {
	var b strings.Builder
	b.WriteString(head)
	for i, o := range all {
		name := rows[i].name
		if rows[i].datastore {
			name += " *(datastore)*"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, ends(o), cell(o[0]), cell(o[1]), cell(o[2]))
	}
	return b.String()
}

func quoted(lines []string) (out []string) {
	for _, line := range lines {
		out = append(out, "`"+line+"`")
	}
	return out
}

// ends says how the DELs ended, and that it was the same with backstop.
func ends(o []outcome) string {
	if len(o[0].Told) == 0 {
		return "none"
	}
	said := strings.Join(o[0].Told, ", ")
	for i, with := range o[1:] {
		if !slices.Equal(with.Told, o[0].Told) {
			said += fmt.Sprintf("; with `%s` %s", modes[i+1], strings.Join(with.Told, ", "))
		}
	}
	return said
}

func cell(o outcome) string {
	lines := quoted(o.Settled)
	if !slices.Equal(o.Stays, o.Settled) {
		lines = append(lines, "*before that:*")
		lines = append(lines, quoted(o.Stays)...)
	}
	for _, ip := range o.Held {
		lines = append(lines, "the datastore holds "+ip)
	}
	if len(o.Settled)+len(o.Held) == 0 {
		lines = append([]string{"**nothing**"}, lines...)
	}
	return strings.Join(append(lines, o.Shown...), "<br>")
}
