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

func TestTableNamesWhatIsAboveItsBar(t *testing.T) {
	var out strings.Builder
	table := newTable(&out)
	b := contestant{name: "tuning"}
	table.add(contest{name: "ADD", state: empty, b: b, bar: 1.5}, result{a: 15, b: 10})
	table.add(contest{name: "DEL", state: empty, b: b, bar: 1.5}, result{a: 16, b: 10})
	table.add(contest{name: "other", state: empty, b: b}, result{a: 90, b: 10})
	if want := []string{"DEL with 0 records: 1.60, bar 1.5"}; !slices.Equal(table.above, want) {
		t.Errorf("above the bar: %q, want %q", table.above, want)
	}
	for _, row := range []string{"ADD .* 1.50 +1.5 +holds", "DEL .* 1.60 +1.5 +ABOVE", "other .* 9.00 *\n"} {
		if !regexp.MustCompile(row).MatchString(out.String()) {
			t.Errorf("no row like %s in\n%s", row, out.String())
		}
	}
}

func TestSidesTakeTurns(t *testing.T) {
	var order []string
	side := func(name string) contestant {
		return contestant{name: name,
			before: func(pod) error { order = append(order, "("+name+")"); return nil },
			run:    func(pod) error { order = append(order, name); return nil }}
	}
	c := contest{name: "turns", state: empty, a: side("a"), b: side("b")}
	if _, err := c.measure(2, func(state) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "(a) a (b) b (b) b (a) a ") {
		t.Errorf("the sides ran in the order %s", got)
	}
}
