// Package graph draws the attachments of a node: each pod, its host links, and the rules and routes that lead to it.
package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
)

// Graph is what is drawn.
type Graph struct {
	nodes []node
	edges []edge
	at    map[string]int
}

type kind int

const (
	pod kind = iota
	link
	table
)

type node struct {
	id    string
	kind  kind
	lines []string
	dim   bool // shared, or of an attachment that is not there any more
}

type edge struct{ from, to, label string }

// Of makes the graph of some records, in their order.
func Of(records []*attachment.Record) *Graph {
	g := &Graph{at: map[string]int{}}
	for _, r := range records {
		g.add(r)
	}
	return g
}

func (g *Graph) add(r *attachment.Record) {
	p := g.node(pod, "pod "+r.Key.String(), r.State != attachment.Attached, append([]string{r.Network + "/" + short(r.ContainerID), r.IfName + ", " + string(r.State)}, addresses(r)...)...)
	names := map[int]string{}
	for _, x := range r.Resources {
		if l := x.Link; l != nil {
			names[l.Index] = g.link(l.Name, x.Share == attachment.Shared, l.Kind)
			g.edge(p, names[l.Index], "")
		}
	}
	for _, x := range r.Resources {
		switch {
		case x.Rule != nil:
			g.edge(p, g.table(x.Rule.Table), "rule "+fmt.Sprint(x.Rule.Priority)+": "+selector(*x.Rule))
		case x.Route != nil && x.Route.Oif != 0:
			over, known := names[x.Route.Oif]
			if !known {
				over = g.link(x.Route.Dev, true, "")
			}
			g.edge(g.table(x.Route.Table), over, "to "+x.Route.Dst)
		}
	}
}

func addresses(r *attachment.Record) (out []string) {
	for _, ip := range r.IPs {
		out = append(out, ip.String())
	}
	return out
}

// short is enough of a container's id to find it.
func short(id string) string {
	if len(id) > 13 {
		return id[:12] + "…"
	}
	return id
}

func selector(r attachment.Rule) string {
	var out []string
	for _, s := range []struct{ word, value string }{{"from", r.Src}, {"to", r.Dst}, {"iif", r.IifName}, {"oif", r.OifName}, {"", r.Other}} {
		if s.value != "" {
			out = append(out, strings.TrimSpace(s.word+" "+s.value))
		}
	}
	return strings.Join(out, " ")
}

func (g *Graph) link(name string, shared bool, kind string) string {
	lines := []string{name}
	if kind != "" {
		lines = append(lines, kind)
	}
	return g.node(link, "link "+name, shared, lines...)
}

func (g *Graph) table(number uint32) string {
	name := fmt.Sprintf("table %d", number)
	if number == 254 {
		name = "table main"
	}
	return g.node(table, name, true, name)
}

// node gives the id that the formats use of a thing, which is drawn once.
func (g *Graph) node(k kind, name string, dim bool, lines ...string) string {
	i, there := g.at[name]
	if !there {
		i = len(g.nodes)
		g.at[name] = i
		g.nodes = append(g.nodes, node{fmt.Sprintf("n%d", i), k, lines, dim})
	}
	return g.nodes[i].id
}

func (g *Graph) edge(from, to, label string) {
	if e := (edge{from, to, label}); !slices.Contains(g.edges, e) {
		g.edges = append(g.edges, e)
	}
}

// Dot writes it for Graphviz.
func (g *Graph) Dot(w io.Writer) error {
	shapes := map[kind]string{pod: "box", link: "ellipse", table: "cylinder"}
	var b strings.Builder
	b.WriteString("digraph attachments {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n")
	for _, n := range g.nodes {
		style := ""
		if n.dim {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  %s [shape=%s, label=%s%s];\n", n.id, shapes[n.kind], dotText(strings.Join(n.lines, "\n")), style)
	}
	for _, e := range g.edges {
		fmt.Fprintf(&b, "  %s -> %s [label=%s];\n", e.from, e.to, dotText(e.label))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// dotText is a quoted string of Graphviz: a backslash and a quote are the only characters that mean something in one.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// Mermaid writes it as a flowchart of Mermaid.
func (g *Graph) Mermaid(w io.Writer) error {
	open := map[kind][2]string{pod: {"[", "]"}, link: {"([", "])"}, table: {"[(", ")]"}}
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for _, n := range g.nodes {
		fmt.Fprintf(&b, "  %s%s\"%s\"%s\n", n.id, open[n.kind][0], mermaidText(strings.Join(n.lines, "\n")), open[n.kind][1])
		if n.dim {
			fmt.Fprintf(&b, "  style %s stroke-dasharray: 4 4\n", n.id)
		}
	}
	for _, e := range g.edges {
		if e.label == "" {
			fmt.Fprintf(&b, "  %s --> %s\n", e.from, e.to)
		} else {
			fmt.Fprintf(&b, "  %s -->|\"%s\"| %s\n", e.from, mermaidText(e.label), e.to)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// mermaidText writes what means something to Mermaid, or to HTML, as entity codes.
func mermaidText(s string) string {
	return strings.NewReplacer("#", "#35;", "&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", "<br>").Replace(s)
}
