package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// oneByOne is how many attachments are removed with a process for each step; all of them would take minutes.
const oneByOne = 100

// bulk removes all attachments of the full node, in three ways, one after the other.
func bulk(n *node, r *report, _ options) error {
	if err := n.enter(full); err != nil {
		return err
	}
	t := table{
		title: "Taking a node's attachments away", header: []string{"how", "attachments", "took", "of ip -batch", "bar", "", "longest wait of another's netlink", "bar", ""},
		note: "1,000 attachments, each with a veth, a route and two rules. Meanwhile somebody else sets an address in the node again and again:\n" +
			"the longest of these calls is how long all others' netlink waited at most.",
	}
	ways := []struct {
		name  string
		count state
		run   func() error
	}{
		{"backstopctl teardown --all", full, func() error { return run("backstopctl", "teardown", "--all", "--yes") }},
		{"ip -batch", full, func() error { return unmake(full, batch) }},
		{"ip, a process for each", oneByOne, func() error {
			return unmake(oneByOne, func(lines ...string) error {
				for _, l := range lines {
					if err := ip(strings.Fields(l)...); err != nil {
						return err
					}
				}
				return nil
			})
		}},
	}
	took, waits := make([]time.Duration, len(ways)), make([]time.Duration, len(ways))
	for i, w := range ways {
		if i > 0 {
			if err := n.dressSeeds(0, w.count); err != nil {
				return err
			}
		}
		others, err := watchOthers()
		if err != nil {
			return err
		}
		start := time.Now()
		err = w.run()
		took[i] = time.Since(start)
		if waits[i], err = others.stop(err); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if err := noSeeds(); err != nil {
			return fmt.Errorf("after %s: %w", w.name, err)
		}
	}
	each := func(i int) time.Duration { return took[i] / time.Duration(ways[i].count) }
	for i, w := range ways {
		row := []string{w.name, fmt.Sprint(int(w.count)), ms(took[i]), fmt.Sprintf("%.3f", times(each(i), each(1))), "", "", ms(waits[i]), "", ""}
		if i == 0 {
			row[3] = fmt.Sprintf("1/%.0f", times(took[1], took[0]))
			_, row[5] = r.judge("teardown --all against ip -batch", times(took[0], took[1]), 1./15)
			row[4] = "1/15"
			_, row[8] = r.judge("seconds that others wait for teardown --all", waits[i].Seconds(), 0.1)
			row[7] = "100 ms"
		}
		t.rows = append(t.rows, row)
	}
	r.add(t)
	n.seeded, n.current = false, 0
	return nil
}

func unmake(count state, by func(...string) error) error {
	var lines []string
	for i := range count {
		lines = append(lines, i.unmade()...)
	}
	return by(lines...)
}

// noSeeds makes sure that all are gone, as ip sees it.
func noSeeds() error {
	for _, what := range []string{"link", "route", "rule"} {
		out, err := exec.Command("ip", what).Output()
		if err != nil {
			return fmt.Errorf("ip %s: %w", what, err)
		}
		for l := range strings.Lines(string(out)) {
			if strings.Contains(l, "seed") || strings.Contains(l, " 10.7.") {
				return fmt.Errorf("left: %s", strings.TrimSpace(l))
			}
		}
	}
	return nil
}

func run(args ...string) error {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out[max(0, len(out)-500):])
	}
	return nil
}

// others is somebody else who uses netlink all the time.
type others struct {
	quit    chan struct{}
	longest chan time.Duration
	failed  error
}

// watchOthers begins with setting an address on a link of its own, which takes the lock that links and addresses share.
func watchOthers() (*others, error) {
	if _, err := netlink.LinkByName("others"); err != nil {
		if err := ip("link", "add", "others", "type", "veth", "peer", "name", "others-peer"); err != nil {
			return nil, err
		}
	}
	link, err := netlink.LinkByName("others")
	if err != nil {
		return nil, fmt.Errorf("looking for the others' link: %w", err)
	}
	addr, err := netlink.ParseAddr("192.0.2.1/32")
	if err != nil {
		return nil, err
	}
	o := &others{quit: make(chan struct{}), longest: make(chan time.Duration)}
	go func() {
		var all []time.Duration
		for {
			select {
			case <-o.quit:
				o.longest <- slices.Max(all)
				return
			default:
			}
			start := time.Now()
			if err := netlink.AddrReplace(link, addr); err != nil {
				o.failed = err
			}
			all = append(all, time.Since(start))
			time.Sleep(time.Millisecond) // else it is the load that it measures
		}
	}()
	return o, nil
}

func (o *others) stop(err error) (time.Duration, error) {
	close(o.quit)
	longest := <-o.longest
	if err == nil && o.failed != nil {
		err = fmt.Errorf("the others' netlink: %w", o.failed)
	}
	return longest, err
}
