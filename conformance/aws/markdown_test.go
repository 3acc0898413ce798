package aws

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const preface = `# What the AWS VPC CNI leaves, without and with backstop

Written by ` + "`make conformance-aws`" + `: the real aws-cni and egress-cni (v1.23.2), called by cnitool in a throw-away node, against
a daemon over the module's own datastore (marked *datastore*) or a scripted one. The list is the example's
(examples/aws-vpc-cni): aws-cni, egress-cni, portmap, backstop. What stays is what ` + "`ip`, `nft`" + ` and the iptables programs show
beyond what they showed before the first ADD, when the pod's netns is gone, the daemon is back and, with backstop, its sweep and
replay have run. **Nothing** says that both the node and the datastore are as before, *earlier* what stayed when the netns was
gone and the daemon was not back yet, or no sweep had run, and *after the DEL* what stayed before that, when the (last) DEL
had just ended. A second pod, of another network, with a masquerade and a published port, is there all the time and keeps what it has.
`

const head = `
| situation | DEL | stays without backstop | with, ` + "`unreachable`" + ` | with, ` + "`always`" + ` |
| --- | --- | --- | --- | --- |
`

func report(rows []row, all [][]outcome) string { return preface + tables(rows, all) + notes }

const notes = `
Of a chain the rules in it are left out above, and what ` + "`nft`" + ` shows where the iptables programs show the same.

Of an ADD that failed backstop knows nothing: it is last in the list and was not called. Where the daemon is up, or a plugin's own
DEL still finds what to remove, nothing stays. Else the pod's rules stay, to an address that no pod has and no record
names: that is how they can be told from a pod's.
And what aws-cni itself takes from a live pod, backstop cannot keep: at DEL it is called first. It can only say so.
`

// tables has one table for each group.
func tables(rows []row, all [][]outcome) string {
	var b strings.Builder
	for i, o := range all {
		r := rows[i]
		if i == 0 || rows[i-1].group != r.group {
			fmt.Fprintf(&b, "\n## %s\n%s", r.group, head)
		}
		name := r.name
		if r.datastore {
			name += " *(datastore)*"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, ends(o), cell(o[0]), cell(o[1]), cell(o[2]))
	}
	return b.String()
}

// ends says how the DELs ended, and whether it was the same with backstop.
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

// cell has the last moment first; one at which it was as at the next is left out.
func cell(o outcome) string {
	lines := moment(o.Settled, "**nothing**")
	if !slices.Equal(o.Stays, o.Settled) {
		lines = append(lines, "*earlier:*")
		lines = append(lines, moment(o.Stays, "nothing")...)
	}
	if len(o.Told) > 0 && !slices.Equal(o.After, o.Stays) {
		lines = append(lines, "*after the DEL:*")
		lines = append(lines, moment(o.After, "nothing")...)
	}
	return strings.Join(append(lines, o.Shown...), "<br>")
}

func moment(stays []string, none string) (out []string) {
	for _, line := range stays {
		if !told(line, stays) {
			out = append(out, "`"+line+"`")
		}
	}
	if len(out) == 0 {
		return []string{none}
	}
	return out
}

var iptables = regexp.MustCompile(`^ip6?tables `)

// told reports whether a line says nothing new to people: a rule of a chain that stays itself, or nft's word for what the
// iptables programs show.
func told(line string, all []string) bool {
	words := strings.Fields(line)
	return strings.HasPrefix(line, "nft table ip") && slices.ContainsFunc(all, func(l string) bool { return iptables.MatchString(l) }) ||
		len(words) > 3 && words[2] == "-A" && slices.Contains(all, words[0]+" "+words[1]+" :"+words[3]+" -")
}
