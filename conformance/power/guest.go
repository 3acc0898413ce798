package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

const (
	journal = "/mnt/disk/backstop/journal.db"
	// roleEnv tells the program in the guest what it is for.
	roleEnv, write, check = "POWER_ROLE", "write", "check"
	// workers add and delete at once, so that they share commits and wait in the spool.
	workers = 4
)

// console writes whole lines: the workers share it.
type console struct {
	mu  sync.Mutex
	out io.Writer
}

func (c *console) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, format+"\n", args...)
}

// guest is what runs in the guest.
func guest(out io.Writer) error {
	c := &console{out: out}
	if os.Getenv(roleEnv) == check {
		return checkIn(c)
	}
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() { c.say("STOPPED %v", work(c, w)) })
	}
	group.Wait()
	return nil
}

// work has pods come and go until the power is cut. The line comes after the plugin returned 0.
func work(c *console, w int) error {
	for n := 0; ; n++ {
		id := fmt.Sprintf("%d-%d", w, n)
		if err := plugin("ADD", id, w, n); err != nil {
			return err
		}
		c.say("%s %s", added, id)
		if n%2 == 0 {
			continue
		}
		id = fmt.Sprintf("%d-%d", w, n-1)
		c.say("%s %s", deleting, id)
		if err := plugin("DEL", id, w, n-1); err != nil {
			return err
		}
		c.say("%s %s", deleted, id)
	}
}

// plugin calls backstop as the runtime would behind a primary, which is away at DEL.
func plugin(verb, id string, w, n int) error {
	netns := fmt.Sprintf("/run/netns/w%d", w)
	conf, err := json.Marshal(map[string]any{"cniVersion": "1.1.0", "name": "n", "type": "backstop", "journal": journal,
		"primary": map[string]any{"probe": []string{"unix:///run/none"}},
		"prevResult": map[string]any{"cniVersion": "1.1.0", "interfaces": []any{map[string]any{"name": "eth0", "sandbox": netns}},
			"ips": []any{map[string]any{"address": fmt.Sprintf("10.%d.%d.%d/32", w+1, n>>8, n&255), "interface": 0}}}})
	if err != nil {
		return err
	}
	cmd := exec.Command("/mnt/backstop")
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID="+id, "CNI_IFNAME=eth0", "CNI_NETNS="+netns, "CNI_PATH=/mnt")
	var log bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(conf), &log
	out, err := cmd.Output()
	said := log.String()
	for line := range strings.Lines(said) { // what a cut left in the spool and nobody was told of
		if err == nil && !strings.Contains(line, "half a record, removed") {
			err = errors.New("it should have nothing to say")
		}
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w: %s%s", verb, id, err, out, said)
	}
	return nil
}

// checkIn says what the journal holds after the power is back: at once, and when the next call has taken in the spool.
func checkIn(c *console) error {
	for _, when := range []string{there, later} {
		if out, err := ctl("journal", "check"); err != nil {
			return fmt.Errorf("journal check: %w: %s", err, out)
		}
		out, err := ctl("list", "-o", "json")
		if err != nil {
			return fmt.Errorf("list: %w: %s", err, out)
		}
		var rows []struct{ ContainerID, State string }
		if err := json.Unmarshal(out, &rows); err != nil {
			return fmt.Errorf("list: %w: %s", err, out)
		}
		for _, r := range rows {
			c.say("%s %s %s", when, r.ContainerID, r.State)
		}
		if when == there {
			if err := plugin("ADD", "next", 0, 60000); err != nil {
				return err
			}
		}
	}
	c.say(sound)
	return nil
}

func ctl(args ...string) ([]byte, error) {
	return exec.Command("/mnt/backstopctl", append([]string{"--journal", journal}, args...)...).CombinedOutput()
}
