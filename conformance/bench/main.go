// Bench shows what backstop costs: it runs it and a contestant in turn, in the same throw-away node and the same
// minutes, and prints ratios. A ratio means the same on a busy machine and on a quiet one; a time does not.
//
//	go run ./bench                     prints the tables
//	go run ./bench -enforce            and fails if a figure is above its bar
//	go run ./bench -only cost,burst    only these parts
//	go run ./bench -write FILE         and writes the page
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/conformance/internal/lab"
	"github.com/backstop-cni/backstop/internal/testnode"
)

// part measures one thing.
type part struct {
	name string
	run  func(*node, *report, options) error
}

// parts run in this order.
var parts = []part{{"cost", ofStates}, {"bulk", bulk}, {"burst", bursts}, {"slow", slowDisk}, {"scale", scale}}

// gauge measures something in each state of the node.
type gauge interface {
	at(*node, *report, options, state) error
	table() table
}

// ofStates brings the node into each state once and has all gauges measure there.
func ofStates(n *node, r *report, o options) error {
	gauges := []gauge{&cost{}, &steps{}, &memory{}}
	for _, s := range states {
		if err := n.enter(s); err != nil {
			return err
		}
		for _, g := range gauges {
			if err := g.at(n, r, o, s); err != nil {
				return fmt.Errorf("beside %d attachments: %w", s, err)
			}
		}
	}
	for _, g := range gauges {
		r.add(g.table())
	}
	return nil
}

type options struct {
	rounds   int
	programs lab.Programs
}

func main() {
	enforce := flag.Bool("enforce", false, "fail if a figure is above its bar")
	rounds := flag.Int("rounds", 120, "how often each contestant runs")
	only := flag.String("only", "", "parts to run, with commas: cost, bulk, burst, slow, scale; all by default")
	write := flag.String("write", "", "write the page to this file")
	flag.Parse()
	// The journal is on a real disk: the price of an fsync is part of what is measured.
	lab.Main(testnode.Node{Disk: true}, func(p lab.Programs) error {
		r := &report{out: os.Stdout}
		if err := r.measure(*only, options{*rounds, p}); err != nil {
			return err
		}
		if *write != "" {
			if err := os.WriteFile(*write, []byte(r.markdown(intro())), 0o644); err != nil {
				return fmt.Errorf("writing the page: %w", err)
			}
		}
		if *enforce && len(r.above) > 0 {
			return errors.New("above the bar: " + strings.Join(r.above, "; "))
		}
		return nil
	})
}

func (r *report) measure(only string, o options) error {
	n, err := newNode()
	if err != nil {
		return err
	}
	wanted := strings.FieldsFunc(only, func(c rune) bool { return c == ',' })
	for _, w := range wanted {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == w }) {
			return fmt.Errorf("-only %s: there is no such part", w)
		}
	}
	for _, p := range parts {
		if len(wanted) > 0 && !slices.Contains(wanted, p.name) {
			continue
		}
		if err := p.run(n, r, o); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
