package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode/uml"
)

// Words that begin the guest's lines.
const (
	booted   = "BOOTED"
	added    = "ADDED"    // acknowledged
	deleting = "DELETING" // begun
	deleted  = "DELETED"  // acknowledged
	there    = "THERE"    // in the journal or its spool, with its state
	later    = "LATER"    // the same, after the next ADD
	sound    = "SOUND"
)

// lab is what a cut needs.
type lab struct{ programs, uml string }

// setup has the disk in its place, and the programs in memory.
const setup = `
mount -t tmpfs none /run && mkdir -p /run/netns /mnt/disk
mount -t ext4 /dev/ubda /mnt/disk || exit 1
cp "$PROGRAMS/backstop" "$PROGRAMS/backstopctl" "$SELF" /mnt/
printf 'netns add w%s\n' 0 1 2 3 | ip -batch -
echo ` + booted + `
/mnt/power guest
umount /mnt/disk
`

// heard is what a guest says, read while it is said.
type heard struct {
	mu    sync.Mutex
	text  strings.Builder
	first map[string]chan struct{} // closed at the first line that begins so
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(b)
	for word, c := range h.first {
		if strings.Contains(h.text.String(), word) {
			close(c)
			delete(h.first, word)
		}
	}
	return len(b), nil
}

// lines are those that were said to their end.
func (h *heard) lines() (all [][]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := h.text.String()
	for line := range strings.Lines(text[:strings.LastIndexByte(text, '\n')+1]) {
		if words := strings.Fields(line); len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}

func (l lab) boot(ctx context.Context, disk, role string, h *heard) error {
	programs, err := filepath.Abs(l.programs)
	self, serr := os.Executable()
	home, herr := os.MkdirTemp("", "backstop-power-home.")
	if err := errors.Join(err, serr, herr); err != nil {
		return err
	}
	defer os.RemoveAll(home)
	return uml.Guest{
		Dir: l.uml, Memory: "256M", Disk: disk, Script: setup, Stdout: h,
		Modules: []string{"ext4"}, // what it needs is built in
		Env:     []string{"PROGRAMS=" + programs, "SELF=" + self, roleEnv + "=" + role},
	}.Run(ctx, home)
}

// patience bounds a boot.
const patience = 2 * time.Minute

// cut boots, kills the guest so long after its first acknowledgement, boots again and judges.
func (l lab) cut(ctx context.Context, after time.Duration) (c result, err error) {
	dir, err := os.MkdirTemp("", "backstop-power.")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	disk := filepath.Join(dir, "disk")
	if err := errors.Join(os.WriteFile(disk, nil, 0o600), os.Truncate(disk, 64<<20)); err != nil {
		return c, err
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", disk).CombinedOutput(); err != nil {
		return c, fmt.Errorf("mkfs.ext4: %w: %s", err, out)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	first, working := make(chan struct{}), make(chan struct{})
	before := &heard{first: map[string]chan struct{}{booted: first, added: working}}
	powered, off := context.WithCancel(ctx)
	defer off()
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- l.boot(powered, disk, write, before) }()
	select {
	case <-first:
		c.boot = time.Since(began)
	case err := <-ended:
		return c, fmt.Errorf("the guest ended at boot: %w: %s", err, before.text.String())
	}
	select {
	case <-working:
	case err := <-ended:
		return c, fmt.Errorf("the guest ended before any ADD: %w: %s", err, before.text.String())
	}
	time.Sleep(after) // the moment of the cut is what is chosen
	off()
	<-ended
	said := &heard{}
	if err := l.boot(ctx, disk, check, said); err != nil && ctx.Err() != nil {
		return c, fmt.Errorf("the second boot: %w: %s", err, said.text.String())
	}
	c.judge(before.lines(), said.lines())
	return c, nil
}
