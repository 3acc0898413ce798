// Bench shows what backstop costs: it runs it and a contestant in turn, in the same throw-away node and the same
// minute, and prints the ratio of their medians. A ratio means the same on a busy machine and on a quiet one; a time
// does not.
//
//	go run ./bench            prints the table
//	go run ./bench -enforce   and fails if a ratio is above its bar
//
// A new row is an entry in contests.go.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/backstop-cni/backstop/conformance/internal/lab"
	"github.com/backstop-cni/backstop/internal/testnode"
)

func main() {
	enforce := flag.Bool("enforce", false, "fail if a ratio is above its bar")
	rounds := flag.Int("rounds", 120, "how often each contestant runs")
	flag.Parse()
	// The journal is on a real disk: the price of an fsync is part of what is measured.
	lab.Main(testnode.Node{Disk: true}, func(lab.Programs) error { return measureAll(*enforce, *rounds) })
}

func measureAll(enforce bool, rounds int) error {
	n, err := newNode()
	if err != nil {
		return err
	}
	t := newTable(os.Stdout)
	for _, c := range contests(n) {
		r, err := c.measure(rounds, n.enter)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		t.add(c, r)
	}
	if enforce && len(t.above) > 0 {
		return errors.New("above the bar: " + strings.Join(t.above, "; "))
	}
	return nil
}
