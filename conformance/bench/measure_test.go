package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	if got := median([]time.Duration{9, 1, 5}); got != 5 {
		t.Errorf("the median of 9, 1, 5 is %d", got)
	}
}

func TestTheReportNamesWhatIsAboveItsBar(t *testing.T) {
	var out strings.Builder
	r := report{out: &out}
	b := contestant{name: "tuning"}
	var rows table
	for _, c := range []struct {
		name string
		bar  float64
		took result
	}{{"ADD", 1.5, result{15, 10}}, {"DEL", 1.5, result{16, 10}}, {"other", 0, result{90, 10}}} {
		rows.rows = append(rows.rows, r.row(contest{name: c.name, state: 100, b: b, bar: c.bar}, c.took))
	}
	r.add(rows)
	if want := []string{"DEL beside 100 attachments: 1.60, bar 1.5"}; !slices.Equal(r.above, want) {
		t.Errorf("above the bar: %q, want %q", r.above, want)
	}
	for _, row := range []string{"ADD .* 1.50 +1.5 +holds", "DEL .* 1.60 +1.5 +ABOVE", "other .* 9.00 *\n"} {
		if !regexp.MustCompile(row).MatchString(out.String()) {
			t.Errorf("no row like %s in\n%s", row, out.String())
		}
	}
	if page := r.markdown("# intro\n"); !strings.Contains(page, "| DEL | 100 | 0.00 ms | tuning 0.00 ms | 1.60 | 1.5 | ABOVE |") {
		t.Errorf("the page lacks the row:\n%s", page)
	}
}

func TestSidesTakeTurns(t *testing.T) {
	var order []string
	side := func(name string) contestant {
		return contestant{name: name,
			before: func(pod) error { order = append(order, "("+name+")"); return nil },
			run:    func(pod) error { order = append(order, name); return nil }}
	}
	c := contest{name: "turns", a: side("a"), b: side("b")}
	if _, err := c.measure(2, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "(a) a (b) b (b) b (a) a ") {
		t.Errorf("the sides ran in the order %s", got)
	}
}
