package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/journal"
)

const (
	few, many  = 1000, 10000
	cacheFiles = 300000
	resultsDir = "/var/lib/cni/results"
)

// scale is what the operator's commands and an ADD take with many records and a runtime's cache that nobody emptied.
func scale(n *node, r *report, o options) error {
	if err := ip("rule", "flush"); err != nil { // those of the former parts
		return err
	}
	if err := batch("rule add pref 0 lookup local", "rule add pref 32766 lookup main"); err != nil {
		return err
	}
	cost := table{title: "An ADD beside ten thousand records", header: []string{"in the node", "backstop", "against", "ratio"},
		note: "1,000 attachments with two rules each; then 9,000 records more, without anything in the kernel; then 300,000 files in the runtime's result cache."}
	commands := table{title: "The operator's commands at scale", header: []string{"command", "1,000 records", "10,000 records", "of that", "and 300,000 cache files", "peak memory"},
		note: "One run each, nothing to remove. \"of that\" is 10,000 records against 1,000: 10 is linear. The cache is read before the lock that pods wait for is taken."}

	var took [3][]time.Duration
	var peaks []int64
	stages := []struct {
		name    string
		prepare func() error
	}{
		{"1,000 records, 2,000 rules", func() error { return fillNode(few) }},
		{"10,000 records, 2,000 rules", func() error { return fillNode(many) }},
		{"10,000 records, 2,000 rules, 300,000 cache files", makeCache},
	}
	n.current, n.seeded = 0, false // fillNode has its own way
	for i, s := range stages {
		if err := s.prepare(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		c := contest{a: (plugin{name: "backstop"}).adding(), b: (plugin{name: "tuning"}).adding()}
		got, err := c.measure(o.rounds/2, func() error { return nil })
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		cost.rows = append(cost.rows, []string{s.name, ms(got.a), "tuning " + ms(got.b), ratio(times(got.a, got.b))})
		peaks = nil
		for _, args := range operators {
			t, peak, err := timed(args...)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			took[i], peaks = append(took[i], t), append(peaks, peak)
		}
	}
	for i, args := range operators {
		a, b, c := took[0][i], took[1][i], took[2][i]
		commands.rows = append(commands.rows, []string{"`backstopctl " + strings.Join(args, " ") + "`", ms(a), ms(b), ratio(times(b, a)), ms(c), mb(peaks[i])})
	}
	r.add(cost)
	r.add(commands)
	return nil
}

var operators = [][]string{
	{"list"}, {"verify"}, {"sweep", "--yes"}, {"gc", "--yes"}, {"gc", "--runtime-cache", "--dry-run"}, {"journal", "check"},
}

// fillNode puts so many records into the journal, as if all were of one pod that is there. The first ones own two rules each.
func fillNode(records int) error {
	if err := os.RemoveAll(journalDir); err != nil {
		return err
	}
	if err := (plugin{name: "backstop"}).exec("ADD", "like", pod(2).netns(), map[string]any{"cniVersion": "1.0.0", "ips": []any{}}); err != nil {
		return err
	}
	host, err := kernel.OpenHost()
	if err != nil {
		return err
	}
	defer host.Close()
	owned := map[string][]attachment.Resource{}
	if err := makeRules(few); err != nil {
		return err
	}
	var ips []netip.Addr
	for i := range few {
		ips = append(ips, netip.MustParseAddr(scaleAddress(i)))
	}
	found, err := host.Rules(attachment.RuleFilter{IPs: ips})
	if err != nil {
		return err
	}
	if len(found) != 2*few {
		return fmt.Errorf("the kernel has %d of the %d rules", len(found), 2*few)
	}
	for _, f := range found {
		ip := strings.TrimSuffix(f.Src+f.Dst, "/32")
		owned[ip] = append(owned[ip], attachment.Resource{Kind: attachment.KindRule, Share: attachment.Own, Rule: &f})
	}
	ctx := context.Background()
	return journal.At(journal.DefaultPath).UpdateWithin(ctx, time.Minute, func(tx *journal.Tx) error {
		like, err := tx.Get(attachment.Key{Network: "bench", ContainerID: "like", IfName: "eth0"})
		if err != nil || like == nil {
			return fmt.Errorf("the record to copy: %v, %w", like, err)
		}
		for i := range records {
			rec, address := *like, scaleAddress(i)
			rec.ContainerID = fmt.Sprintf("scale-%d", i)
			rec.IPs = []netip.Addr{netip.MustParseAddr(address)}
			rec.Resources = owned[address]
			if err := tx.Put(&rec); err != nil {
				return err
			}
		}
		return nil
	})
}

func scaleAddress(i int) string { return fmt.Sprintf("10.%d.%d.%d", 20+i/62500, i/250%250, i%250+1) }

// makeRules adds those that are not there.
func makeRules(records int) error {
	out, err := exec.Command("ip", "rule").Output()
	if err != nil {
		return fmt.Errorf("ip rule: %w", err)
	}
	var lines []string
	for i := strings.Count(string(out), "lookup 100"); i < records; i++ {
		lines = append(lines, "rule add pref 512 to "+scaleAddress(i)+" lookup main", "rule add pref 1536 from "+scaleAddress(i)+" lookup 100")
	}
	return batch(lines...)
}

// makeCache leaves entries of pods that are gone, as a runtime does that is killed at the wrong moment, again and again.
func makeCache() error {
	if err := os.MkdirAll(resultsDir, 0o700); err != nil {
		return err
	}
	list, _ := json.Marshal(map[string]any{"cniVersion": "1.0.0", "name": "bench", "plugins": []map[string]string{{"type": "ptp"}, {"type": "backstop"}}})
	for i := range cacheFiles {
		id := fmt.Sprintf("%064x", i)
		b, err := json.Marshal(map[string]any{"kind": "cniCacheV1", "containerId": id, "config": list, "ifName": "eth0", "networkName": "bench",
			"netns": "/run/netns/" + id[40:], "result": pod(0).result("10.99.0.1")})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(resultsDir, "bench-"+id+"-eth0"), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// timed runs backstopctl and looks at its memory as it goes on.
func timed(args ...string) (took time.Duration, peak int64, err error) {
	cmd := exec.Command("backstopctl", args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	done := make(chan error)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			took = time.Since(start)
			if err != nil {
				err = fmt.Errorf("backstopctl %s: %w: %s", strings.Join(args, " "), err, errs.String())
			}
			return took, peak, err
		case <-time.After(2 * time.Millisecond):
			if now, err := highWater(cmd.Process.Pid); err == nil && now > peak {
				peak = now
			}
		}
	}
}
