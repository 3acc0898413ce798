package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// Where the gated primary and its daemon meet, in a node's own /run.
const (
	GatedDir    = "/run/gated"
	GatedSocket = GatedDir + "/sock"
	gatedState  = GatedDir + "/state.json"
)

// Daemon is the gated primary's daemon as a real process, which can be killed.
type Daemon struct {
	Program string // path of gatedprimary
	running *exec.Cmd
}

// Up starts the daemon and waits until it accepts.
func (d *Daemon) Up() error {
	if err := os.MkdirAll(GatedDir, 0o700); err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	d.running = exec.Command(d.Program, "daemon", "-socket", GatedSocket, "-state", gatedState)
	d.running.Stderr = os.Stderr
	if err := d.running.Start(); err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	return testnode.Until(10*time.Second, func() error {
		c, err := net.Dial("unix", GatedSocket)
		if err != nil {
			return fmt.Errorf("the daemon does not accept: %w", err)
		}
		return c.Close()
	})
}

// Down kills the daemon as the kernel would when memory runs out: its socket's file stays behind.
func (d *Daemon) Down() error {
	if d.running == nil {
		return errors.New("the daemon is not up")
	}
	if err := d.running.Process.Kill(); err != nil {
		return fmt.Errorf("killing the daemon: %w", err)
	}
	d.running.Wait() // always an error: it was killed
	d.running = nil
	return nil
}

// Forget makes the daemon lose its memory; one that is up is restarted for it.
func (d *Daemon) Forget() error {
	up := d.running != nil
	if up {
		if err := d.Down(); err != nil {
			return err
		}
	}
	if err := os.Remove(gatedState); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("letting the daemon forget: %w", err)
	}
	if up {
		return d.Up()
	}
	return nil
}
