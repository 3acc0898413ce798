package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table is one part of the report.
type table struct {
	title, note string
	header      []string
	rows        [][]string
}

// report prints tables as they are done, and keeps them for the page.
type report struct {
	out    io.Writer
	tables []table
	above  []string // what is over its bar
}

func (r *report) add(t table) {
	r.tables = append(r.tables, t)
	fmt.Fprintf(r.out, "\n%s\n", t.title)
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.header}, t.rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
}

// judge gives the cells "bar" and verdict for a figure. A bar of 0 is none.
func (r *report) judge(what string, got, bar float64) (string, string) {
	switch {
	case bar == 0:
		return "", ""
	case got > bar:
		r.above = append(r.above, fmt.Sprintf("%s: %.2f, bar %.2g", what, got, bar))
		return fmt.Sprintf("%.2g", bar), "ABOVE"
	}
	return fmt.Sprintf("%.2g", bar), "holds"
}

// markdown is the page's text.
func (r *report) markdown(intro string) string {
	var b strings.Builder
	b.WriteString(intro)
	for _, t := range r.tables {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| %s |\n|%s\n", t.title, t.note, strings.Join(t.header, " | "), strings.Repeat(" --- |", len(t.header)))
		for _, row := range t.rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
	}
	return b.String()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

func times(a, b time.Duration) float64 { return float64(a) / float64(b) }

func ratio(f float64) string { return fmt.Sprintf("%.2f", f) }
