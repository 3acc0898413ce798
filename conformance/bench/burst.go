package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// burstSize is how many ADDs one burst has in all; as many as were asked for are under way at any time.
const burstSize = 256

// burst is what one contestant's burst came to.
type burst struct{ median, p99, total time.Duration }

// rivals are who stores a record: backstop, and two that do nothing else.
var rivals = []plugin{
	{name: "backstop"},
	{name: "boltplugin", config: map[string]any{"lock": "polling"}},
	{name: "boltplugin", config: map[string]any{"lock": "queue"}},
}

const rivalsNote = "Against a plugin that does nothing but store its stdin in a bbolt file: once with bbolt's own lock, which is tried anew each 50 ms, and\n" +
	"once with a queue, flock(2) on a file beside it, and a commit for each process. Medians of the bursts' figures; 256 ADDs in a burst."

func bursts(n *node, r *report, o options) error {
	t := burstTable("Pods that start at once", rivalsNote)
	if err := n.beforeBursts(); err != nil {
		return err
	}
	for _, atOnce := range []int{16, 64} {
		bar, most := 0.0, 0.0
		if atOnce == 64 {
			bar, most = 0.6, 1
		}
		if err := r.burst(&t, n, atOnce, 5, bar, most); err != nil {
			return err
		}
	}
	r.add(t)
	return nil
}

func burstTable(title, note string) table {
	return table{title: title, note: note, header: []string{"at once", "plugin", "median", "p99", "all 256 after", "backstop's p99", "bar", "", "backstop's total", "bar", ""}}
}

// burst has the rivals take turns.
func (r *report) burst(t *table, n *node, atOnce, rounds int, bar, most float64) error {
	got := make([][]burst, len(rivals))
	for round := range rounds + 1 {
		for i, p := range rivals {
			b, err := p.burst(round, atOnce)
			if err != nil {
				return err
			}
			if round > 0 { // the first one is to warm up
				got[i] = append(got[i], b)
			}
		}
	}
	var own burst
	for i, p := range rivals {
		name, b := p.name, middle(got[i])
		row := []string{fmt.Sprint(atOnce), name, ms(b.median), ms(b.p99), ms(b.total)}
		if i == 0 {
			own = b
		} else {
			row[1] = fmt.Sprintf("bbolt, %s", p.config["lock"])
			if i > 1 {
				bar, most = 0, 0 // the bars are for the polling one
			}
			p99, total := times(own.p99, b.p99), times(own.total, b.total)
			what := fmt.Sprintf("%d at once against %s", atOnce, row[1])
			b1, v1 := r.judge("p99 of "+what, p99, bar)
			b2, v2 := r.judge("total of "+what, total, most)
			row = append(row, ratio(p99), b1, v1, ratio(total), b2, v2)
		}
		t.rows = append(t.rows, row)
	}
	return nil
}

// beforeBursts makes the pods, each with its own links, addresses and netns.
func (n *node) beforeBursts() error {
	if n.current >= burstSize {
		return nil
	}
	err := n.dressSeeds(n.current, burstSize)
	n.current, n.seeded = burstSize, false
	return err
}

// burst is one, into a journal that has just been begun.
func (p plugin) burst(round, atOnce int) (burst, error) {
	if err := os.RemoveAll(journalDir); err != nil {
		return burst{}, err
	}
	if err := p.call("ADD", 0); err != nil {
		return burst{}, err
	}
	next := make(chan int)
	var mu sync.Mutex
	var took []time.Duration
	var failed error
	var wg sync.WaitGroup
	start := time.Now()
	for range atOnce {
		wg.Go(func() {
			for i := range next {
				began := time.Now()
				err := p.addSeed(state(i), fmt.Sprintf("burst-%d-%d-%d", atOnce, round, i))
				mu.Lock()
				took = append(took, time.Since(began))
				if err != nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	for i := range burstSize {
		next <- i
	}
	close(next)
	wg.Wait()
	return burst{median(took), percentile(took, 0.99), time.Since(start)}, failed
}

// middle is the median of each figure.
func middle(bs []burst) burst {
	of := func(f func(burst) time.Duration) time.Duration {
		var all []time.Duration
		for _, b := range bs {
			all = append(all, f(b))
		}
		return median(all)
	}
	return burst{of(func(b burst) time.Duration { return b.median }), of(func(b burst) time.Duration { return b.p99 }),
		of(func(b burst) time.Duration { return b.total })}
}
