package testnode

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Daemon is a primary's daemon as a real process, which can be killed.
type Daemon struct {
	Socket string // where it listens

	running *exec.Cmd
}

// Running says that the daemon was started and not killed since.
func (d *Daemon) Running() bool { return d.running != nil }

// Start starts the daemon and waits until it accepts.
func (d *Daemon) Start(program string, args ...string) error {
	d.running = exec.Command(program, args...)
	d.running.Stderr = os.Stderr
	if err := d.running.Start(); err != nil {
		return fmt.Errorf("starting the daemon: %w", err)
	}
	return Until(10*time.Second, func() error {
		c, err := net.Dial("unix", d.Socket)
		if err != nil {
			return fmt.Errorf("the daemon does not accept: %w", err)
		}
		return c.Close()
	})
}

// Kill ends the daemon as the kernel would when memory runs out: its socket's file stays behind.
func (d *Daemon) Kill() error {
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

// Signal sends the daemon a signal that it outlives.
func (d *Daemon) Signal(s syscall.Signal) error {
	if d.running == nil {
		return errors.New("the daemon is not up")
	}
	return d.running.Process.Signal(s)
}
