package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// result is what a contest came to: the median of each side.
type result struct{ a, b time.Duration }

func (r result) ratio() float64 { return float64(r.a) / float64(r.b) }

// warmUp is how many rounds are not counted: the first ones read the programs from the disk.
const warmUp = 3

// measure runs the contest. The sides take turns, and take turns in being first. Whenever all pods have had their
// turn, enter sets the node back, so that it stays in the contest's state.
func (c contest) measure(rounds int, enter func(state) error) (result, error) {
	var a, b []time.Duration
	for round := range rounds + warmUp {
		p := pod(round % pods)
		if p == 0 {
			if err := enter(c.state); err != nil {
				return result{}, fmt.Errorf("bringing the node to %s: %w", c.state.name, err)
			}
		}
		type side struct {
			contestant
			times *[]time.Duration
		}
		sides := []side{{c.a, &a}, {c.b, &b}}
		if round%2 == 1 {
			slices.Reverse(sides)
		}
		for _, s := range sides {
			took, err := s.once(p)
			if err != nil {
				return result{}, err
			}
			if round >= warmUp {
				*s.times = append(*s.times, took)
			}
		}
	}
	return result{median(a), median(b)}, nil
}

// once is one timed run of a side.
func (c contestant) once(p pod) (time.Duration, error) {
	if c.before != nil {
		if err := c.before(p); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err := c.run(p)
	return time.Since(start), err
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// table prints the results as they come.
type table struct {
	out   io.Writer
	above []string // rows over their bar
}

const rowFormat = "%-32s  %-26s  %10s  %18s  %6s  %4s  %s\n"

func newTable(out io.Writer) *table {
	fmt.Fprintf(out, rowFormat, "what", "node", "backstop", "against", "ratio", "bar", "")
	return &table{out: out}
}

func (t *table) add(c contest, r result) {
	bar, verdict := "", ""
	if c.bar > 0 {
		bar, verdict = fmt.Sprintf("%.1f", c.bar), "holds"
		if r.ratio() > c.bar {
			verdict = "ABOVE"
			t.above = append(t.above, fmt.Sprintf("%s with %s: %.2f, bar %.1f", c.name, c.state.name, r.ratio(), c.bar))
		}
	}
	fmt.Fprintf(t.out, rowFormat, c.name, c.state.name, ms(r.a), c.b.name+" "+ms(r.b), fmt.Sprintf("%.2f", r.ratio()), bar, verdict)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }
