package nodescript

import (
	"errors"
	"fmt"
	"net"

	"github.com/rogpeppe/go-internal/testscript"
)

// Daemon is the primary's daemon as a story sees it.
type Daemon interface {
	Up() error     // returns when it answers
	Down() error   // returns when it does not answer any more
	Forget() error // it has restarted without its memory, or does so when it comes up again
}

func daemonCommand(d Daemon) Command {
	return func(_ *testscript.TestScript, args []string) error {
		if len(args) != 1 {
			return errors.New("daemon: one word is wanted")
		}
		switch args[0] {
		case "up":
			return d.Up()
		case "down":
			return d.Down()
		case "forget":
			return d.Forget()
		default:
			return fmt.Errorf("daemon: %q is none of up, down, forget", args[0])
		}
	}
}

// Socket is the least daemon there can be: it accepts connections on a unix socket, and that is all.
type Socket struct {
	Path     string
	listener net.Listener
}

// Up listens.
func (s *Socket) Up() error {
	l, err := net.Listen("unix", s.Path)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", s.Path, err)
	}
	s.listener = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // Down closed it
			}
			c.Close()
		}
	}()
	return nil
}

// Down stops listening; the socket's file goes, too.
func (s *Socket) Down() error {
	if s.listener == nil {
		return errors.New("the daemon is not up")
	}
	err := s.listener.Close()
	s.listener = nil
	return err
}

// Forget does nothing: a socket remembers nothing.
func (s *Socket) Forget() error { return nil }
