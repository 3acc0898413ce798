package primary

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// In a bubble of synctest the clock is the test's own: what Wait takes is exact. A readiness file is the probe that
// needs no other clock.
func TestWait(t *testing.T) {
	const timeout = 250 * time.Millisecond
	for name, c := range map[string]struct {
		wait   time.Duration
		comes  time.Duration // when the file appears; never if negative
		cancel time.Duration // when the caller gives up; never if zero
		want   bool
		least  time.Duration
		most   time.Duration
	}{
		"it is there":                        {wait: time.Minute, comes: 0, want: true},
		"it is there, and nobody would wait": {wait: 0, comes: 0, want: true},
		"no wait: asked once":                {wait: 0, comes: -1, want: false},
		"it comes":                           {wait: time.Minute, comes: 3 * time.Second, want: true, least: 3 * time.Second, most: 3*time.Second + poll},
		"it comes too late":                  {wait: time.Second, comes: 3 * time.Second, want: false, least: time.Second - poll, most: time.Second},
		"it never comes":                     {wait: 45 * time.Second, comes: -1, want: false, least: 45*time.Second - poll, most: 45 * time.Second},
		"the caller gives up":                {wait: time.Minute, comes: -1, cancel: 2 * time.Second, want: false, least: 2 * time.Second, most: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			ready := filepath.Join(t.TempDir(), "ready")
			create := func() {
				if err := os.WriteFile(ready, nil, 0o600); err != nil {
					t.Error(err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.comes == 0 {
					create()
				} else if c.comes > 0 {
					defer time.AfterFunc(c.comes, create).Stop()
				}
				if c.cancel > 0 {
					defer time.AfterFunc(c.cancel, cancel).Stop()
				}
				began := time.Now()
				got := Wait(ctx, []string{"file://" + ready}, timeout, c.wait)
				if took := time.Since(began); got != c.want || took < c.least || took > c.most {
					t.Errorf("%v after %v, want %v after %v to %v", got, took, c.want, c.least, c.most)
				}
			})
		})
	}
}

// The daemon starts while it is waited for, beside the file of the one before.
func TestWaitForASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.sock")
	dead := listen(t, "unix", path).(*net.UnixListener)
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if Wait(t.Context(), []string{"unix://" + path}, short, 2*poll) {
		t.Fatal("reachable before it is there")
	}
	began := time.Now()
	answer := make(chan bool)
	go func() { answer <- Wait(t.Context(), []string{"unix://" + path}, short, time.Minute) }()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	listen(t, "unix", path)
	if !<-answer || time.Since(began) > time.Minute/2 {
		t.Errorf("not reachable, or only after %v", time.Since(began))
	}
}

// A daemon that hangs costs each question its timeout: never more than wait and timeout together.
func TestWaitForADaemonThatHangs(t *testing.T) {
	probe, _ := full(t)
	const wait = 300 * time.Millisecond
	began := time.Now()
	if Wait(t.Context(), []string{probe}, short, wait) {
		t.Error("reachable")
	}
	if took := time.Since(began); took > wait+short+slack {
		t.Errorf("it took %v, at most %v were allowed", took, wait+short)
	}
	// One question that would take longer than all of it.
	began = time.Now()
	if Wait(t.Context(), []string{probe}, wait, 0) {
		t.Error("reachable")
	}
	if took := time.Since(began); took < wait || took > wait+slack {
		t.Errorf("one question took %v, its timeout is %v", took, wait)
	}
}

// A node that drops everything answers no SYN at all.
func TestABlackHole(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		for _, line := range []string{"link add v1 type veth peer name p1", "link set v1 up", "link set p1 up", "addr add 10.0.0.1/24 dev v1",
			"neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v1 nud permanent"} {
			if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
				t.Fatalf("ip %s: %v: %s", line, err, out)
			}
		}
		for probe, least := range map[string]time.Duration{
			"tcp://10.0.0.2:50051": short, // nobody answers: the whole timeout
			"tcp://10.9.9.9:50051": 0,     // no route: at once
		} {
			began := time.Now()
			if Reachable(t.Context(), []string{probe}, short) {
				t.Errorf("%s is reachable", probe)
			}
			if took := time.Since(began); took < least || took > short+slack {
				t.Errorf("%s was asked for %v, the timeout is %v", probe, took, short)
			}
		}
	})
}
