package main

import (
	"slices"
	"time"
)

// result is what a contest came to: the median of each side.
type result struct{ a, b time.Duration }

// warmUp is how many rounds are not counted: the first ones read the programs from the disk.
const warmUp = 3

// measure runs the contest. The sides take turns, and take turns in being first. Whenever all pods have had their
// turn, reset sets the node back, so that it stays in the contest's state.
func (c contest) measure(rounds int, reset func() error) (result, error) {
	var a, b []time.Duration
	for round := range rounds + warmUp {
		p := pod(round % pods)
		if p == 0 {
			if err := reset(); err != nil {
				return result{}, err
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
	took := time.Since(start)
	if err == nil && c.after != nil {
		err = c.after(p)
	}
	return took, err
}

func percentile(times []time.Duration, p float64) time.Duration {
	slices.Sort(times)
	return times[int(p*float64(len(times)-1))]
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
