package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

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
	process testnode.Daemon
}

// Up starts the daemon and waits until it accepts.
func (d *Daemon) Up() error {
	if err := os.MkdirAll(GatedDir, 0o700); err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	d.process.Socket = GatedSocket
	return d.process.Start(d.Program, "daemon", "-socket", GatedSocket, "-state", gatedState)
}

// Down kills the daemon: its socket's file stays behind.
func (d *Daemon) Down() error { return d.process.Kill() }

// Forget makes the daemon lose its memory; one that is up is restarted for it.
func (d *Daemon) Forget() error {
	up := d.process.Running()
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
