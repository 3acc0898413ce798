package testnode

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// FullSocket is a unix socket that takes no further connection, as of a daemon that is stopped or hangs: its backlog
// is full. free makes room for one.
func FullSocket(t *testing.T) (path string, free func()) {
	t.Helper()
	address := &unix.SockaddrUnix{Name: filepath.Join(t.TempDir(), "full.sock")}
	s := socket(t)
	if err := errors.Join(unix.Bind(s, address), unix.Listen(s, 0)); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if err := unix.Connect(socket(t), address); err == unix.EAGAIN {
			return address.Name, func() {
				c, _, err := unix.Accept(s)
				if err != nil {
					t.Error(err)
				}
				unix.Close(c)
			}
		}
	}
	t.Fatal("1000 connections fit into a backlog of none")
	return "", nil
}

func socket(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}
