package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// stepNames say what ends at which point, in the order in which an ADD passes them.
var stepNames = []struct{ point, what string }{
	{"plugin.begun", "start of the process, of Go's runtime and of the packages"},
	{"plugin.opened", "configuration and prevResult decoded, netlink opened"},
	{"add.captured", "links, addresses, routes and rules read (netlink), record made"},
	{"spool.locked", "the lock"},
	{"journal.commit", "bbolt opened, claims compared, record and indexes put"},
	{"journal.committed", "commit: two writes, two fdatasync(2)"},
	{"add.committed", "bbolt closed"},
	{"add.stored", "what is due looked at, unlocked"},
	{"", "result written, process ended and waited for"},
}

// steps shows where an ADD's time goes.
type steps struct {
	program string
	medians [][]time.Duration // of each state, by step
}

func (g *steps) at(_ *node, _ *report, o options, s state) error {
	if s != empty && s != full {
		return nil
	}
	dir, err := os.MkdirTemp("", "bench.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	g.program = filepath.Join(dir, "backstop")
	build := exec.Command("go", "build", "-C", "..", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-tags", "steps", "-o", g.program, "./cmd/backstop")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the plugin with its steps: %w: %s", err, out)
	}
	all := make([][]time.Duration, len(stepNames))
	for round := range o.rounds {
		took, err := g.once(pod(round%pods), filepath.Join(dir, "steps"))
		if err != nil {
			return err
		}
		for j, t := range took {
			all[j] = append(all[j], t)
		}
	}
	var medians []time.Duration
	for _, ts := range all {
		medians = append(medians, median(ts))
	}
	g.medians = append(g.medians, medians)
	return nil
}

func (g *steps) table() table {
	t := table{title: "Where an ADD's time goes", header: []string{"step", "0 attachments", "share", "1,000 attachments", "share"},
		note: "From the caller's point of view, by a build of the plugin that writes the time at each point (build tag `steps`; its writing is in the figures, some µs a\n" +
			"step). Medians."}
	for j, s := range stepNames {
		row := []string{s.what}
		for _, medians := range g.medians {
			var total time.Duration
			for _, m := range medians {
				total += m
			}
			row = append(row, ms(medians[j]), fmt.Sprintf("%.0f %%", 100*times(medians[j], total)))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// once is how long each step of one ADD took.
func (g *steps) once(pod pod, file string) ([]time.Duration, error) {
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return nil, err
	}
	cmd, err := (plugin{name: "backstop"}).command("ADD", fmt.Sprintf("measured-backstop-%d", pod), pod.netns(), pod.result(pod.address()))
	if err != nil {
		return nil, err
	}
	cmd.Path = g.program
	cmd.Env = append(cmd.Env, "BACKSTOP_STEPS="+file)
	start := monotonic()
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("ADD: %w: %s", err, out)
	}
	passed := map[string]int64{"": monotonic()}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var at int64
		var name string
		if _, err := fmt.Sscan(s.Text(), &at, &name); err != nil {
			return nil, fmt.Errorf("step %q: %w", s.Text(), err)
		}
		passed[name] = at
	}
	var took []time.Duration
	for _, s := range stepNames {
		at, ok := passed[s.point]
		if !ok {
			return nil, fmt.Errorf("an ADD did not pass %s", s.point)
		}
		took = append(took, time.Duration(at-start))
		start = at
	}
	return took, nil
}

func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}
