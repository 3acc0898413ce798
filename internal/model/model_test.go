package model

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode"
)

const (
	shortTime  = 8 * time.Second  // of a run with no number of operations given
	settleTime = 15 * time.Second // within which everything comes to rest
)

// TestModel plays runs until the wanted number of operations is done. Without one it plays as many as a few seconds
// allow, with the same seeds each time.
func TestModel(t *testing.T) {
	if _, err := exec.LookPath("bridge"); err != nil && os.Getpid() != 1 {
		t.Fatalf("iproute2's bridge is missing: %v", err)
	}
	for i := range *nodesFlag {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			testnode.Run(t, func(t *testing.T) { playRuns(t, *seedFlag+uint64(i)*1_000_000) })
		})
	}
}

// tally is what the end of a test says.
type tally struct{ operations, runs, foreign, left, faults int }

func playRuns(t *testing.T, seed uint64) {
	wanted := *opsFlag / *nodesFlag
	t.Logf("first seed %d", seed)
	start := time.Now()
	var sum tally
	for ; sum.faults+sum.foreign+sum.left == 0; seed++ {
		if wanted > 0 && sum.operations >= wanted || wanted == 0 && time.Since(start) > shortTime {
			break
		}
		ops, err := only(plan(seed), *onlyFlag)
		if err != nil {
			t.Fatal(err)
		}
		f, err := playRun(seed, ops, settleTime)
		if err != nil {
			t.Fatal(err)
		}
		sum.runs++
		sum.operations += len(ops)
		if f != nil {
			sum.add(f.err)
			const again = "go test ./internal/model -run '^TestModel$' -operations=1"
			t.Errorf("seed %d: %v\nplay it again: %s -seed=%d\n%s", seed, f.err, again, seed, f.story())
			if few, f := shrink(seed, ops, f, *shrinkFlag); len(few) < len(ops) {
				t.Errorf("shorter: %s -seed=%d -only=%s\n%v\n%s", again, seed, numbers(few), f.err, f.story())
			}
		}
	}
	took := time.Since(start)
	t.Logf("%d operations in %d runs, %.0f a second; foreign removals: %d, leftovers: %d, other faults: %d",
		sum.operations, sum.runs, float64(sum.operations)/took.Seconds(), sum.foreign, sum.left, sum.faults)
}

// add counts the faults that an error is made of.
func (s *tally) add(err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			s.add(e)
		}
		return
	}
	switch {
	case errors.As(err, new(foreignRemoval)):
		s.foreign++
	case errors.As(err, new(leftover)):
		s.left++
	default:
		s.faults++
	}
}

// failure is a run that went wrong.
type failure struct {
	err    error
	played int // operations
	trace  []string
	log    string
	open   string // records, and the stories of those that the failure may be about
}

// lastLines is how much of a run a failure shows.
const lastLines = 60

func (f *failure) story() string {
	return "the last operations:\n" + tail(f.trace, lastLines) + "\nthe journal:\n" + f.open + "backstop's log:\n" + tail(strings.Split(f.log, "\n"), lastLines)
}

func tail(lines []string, n int) string { return strings.Join(lines[max(0, len(lines)-n):], "\n") }

// playRun plays one list of operations on a new world. The error says that the node itself could not be made.
func playRun(seed uint64, ops []op, settleTime time.Duration) (*failure, error) {
	w, err := newWorld(seed)
	if err != nil {
		return nil, err
	}
	defer w.end()
	w.settleTime = settleTime
	played, err := w.playAll(ops)
	if err == nil {
		return nil, nil
	}
	log, _ := os.ReadFile(logFile)
	open, _, _ := w.ctl("list")
	return &failure{err, played, w.trace, string(log), w.said + open + w.stories(err.Error())}, nil
}

func (w *world) playAll(ops []op) (played int, err error) {
	for i, o := range ops {
		if err := w.play(o); err != nil {
			return i + 1, err
		}
	}
	w.note("all settles")
	if err := w.settle(); err != nil {
		return len(ops), err
	}
	w.note("all pods end")
	return len(ops), w.farewell()
}
