// Package primary asks whether the primary plugin's daemon is there.
package primary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// poll is how often Wait asks again.
const poll = 100 * time.Millisecond

// busy is how soon a socket that took no connection is tried again.
const busy = 5 * time.Millisecond

// Validate says what is wrong with a probe.
func Validate(probe string) error {
	u, err := url.Parse(probe)
	if err != nil {
		return fmt.Errorf("%q is not a URL: %w", probe, err)
	}
	switch u.Scheme {
	case "unix", "file", "grpc+unix":
		if u.Host != "" || !filepath.IsAbs(u.Path) {
			return fmt.Errorf("%q: want %s:// and an absolute path (three slashes)", probe, u.Scheme)
		}
	case "tcp":
		if _, port, err := net.SplitHostPort(u.Host); err != nil || port == "" || (u.Path != "" && u.Path != "/") {
			return fmt.Errorf("%q: want tcp://host:port", probe)
		}
	default:
		return fmt.Errorf("%q: want unix:///path, grpc+unix:///path, tcp://host:port or file:///path", probe)
	}
	return nil
}

// Reachable reports whether any of the probes answers: a socket that accepts a
// connection, a gRPC server that greets, a file that exists. Each is given at most timeout; they are asked at once.
func Reachable(ctx context.Context, probes []string, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers := make(chan bool, len(probes))
	for _, p := range probes {
		go func() { answers <- ask(ctx, p) }()
	}
	for range probes {
		select {
		case yes := <-answers:
			if yes {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// Wait asks until a probe answers or wait is over.
func Wait(ctx context.Context, probes []string, timeout, wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout+wait)
	defer cancel()
	end := time.Now().Add(wait)
	for {
		if Reachable(ctx, probes, timeout) {
			return true
		}
		if time.Now().Add(poll).After(end) {
			return false
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return false
		}
	}
}

func ask(ctx context.Context, probe string) bool {
	u, err := url.Parse(probe)
	if err != nil {
		return false
	}
	var d net.Dialer
	network, address := u.Scheme, u.Path
	talks := accepts
	switch u.Scheme {
	case "grpc+unix":
		network, talks = "unix", greets
	case "file":
		_, err := os.Stat(u.Path)
		return err == nil
	case "tcp":
		address = u.Host
	}
	for {
		c, err := d.DialContext(ctx, network, address)
		if err == nil {
			defer c.Close()
			return talks(ctx, c)
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return false
		}
		// A unix socket whose backlog is full: a daemon is there and busy, or hangs. Time tells.
		select {
		case <-time.After(busy):
		case <-ctx.Done():
			return false
		}
	}
}

func accepts(context.Context, net.Conn) bool { return true }

// preface is how an HTTP/2 client begins, with empty settings (RFC 9113, 3.4). The server's own settings come at once, as
// its first frame; for a daemon that is stopped or stuck the kernel only takes the connection.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

func greets(ctx context.Context, c net.Conn) bool {
	if end, limited := ctx.Deadline(); limited {
		_ = c.SetDeadline(end) // without it the caller's own wait ends this
	}
	if _, err := c.Write([]byte(preface)); err != nil {
		return false
	}
	var head [9]byte // of a frame (RFC 9113, 4.1): length, type, flags, stream
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return false
	}
	const settings, ack = 4, 1
	return head[3] == settings && head[4]&ack == 0 && head[5]|head[6]|head[7]|head[8] == 0
}
