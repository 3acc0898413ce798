// Package ipam releases what an IPAM plugin holds for an attachment when its
// primary cannot: the conflist's "ipam" key names the plugin. Nothing is ever guessed without it.
package ipam

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"golang.org/x/sys/unix"
)

// HostLocal is the reference plugin that keeps its reservations in files: those
// are released without running anything.
const HostLocal = "host-local"

// defaultDataDir is where host-local keeps them unless its configuration says
// otherwise (plugins v1.10.0, backend/disk).
const defaultDataDir = "/var/lib/cni/networks"

// Config is the conflist's "ipam" key.
type Config struct {
	Type    string `json:"type"`
	DataDir string `json:"dataDir"`
}

// Parse reads the key; the zero Config when it is absent.
func Parse(key json.RawMessage) (Config, error) {
	var c Config
	if len(key) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(key, &c); err != nil {
		return c, fmt.Errorf("ipam: %w", err)
	}
	if c.DataDir == "" {
		c.DataDir = defaultDataDir
	}
	return c, nil
}

// dir is where host-local keeps a network's reservations; the name was checked
// when it became part of a key.
func (c Config) dir(network string) string { return filepath.Join(c.DataDir, network) }

// List reads a network's reservations. No directory means none.
func (c Config) List(network string) ([]attachment.Reservation, error) {
	dir := c.dir(network)
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list reservations: %w", err)
	}
	var out []attachment.Reservation
	for _, f := range files {
		// "lock" and "last_reserved_ip.<range>" are no addresses.
		ip, err := netip.ParseAddr(f.Name())
		if err != nil || !f.Type().IsRegular() {
			continue
		}
		if r, ok := read(filepath.Join(dir, f.Name()), ip); ok {
			out = append(out, r)
		}
	}
	return out, nil
}

// maxReservation bounds what is read of a file: it holds an id and a name.
const maxReservation = 4096

func read(path string, ip netip.Addr) (attachment.Reservation, bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return attachment.Reservation{}, false
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxReservation {
		return attachment.Reservation{}, false
	}
	b, err := io.ReadAll(io.LimitReader(f, maxReservation))
	if err != nil {
		return attachment.Reservation{}, false
	}
	id, ifName, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	id = strings.TrimSpace(id)
	return attachment.Reservation{Address: ip, ContainerID: id, IfName: strings.TrimSpace(ifName), File: path}, id != ""
}

// Release removes the reservations of a network that want selects of all, under
// host-local's own lock, each read once more under it. last_reserved_ip stays, so that an address does not come round
// again at once. wait bounds the wait for the lock (ErrLocked).
func (c Config) Release(network string, wait time.Duration, want func([]attachment.Reservation) []attachment.Reservation) (released []attachment.Reservation, err error) {
	if c.Type != HostLocal {
		return nil, nil
	}
	dir := c.dir(network)
	unlock, err := lock(dir, wait)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := c.List(network)
	errs := []error{err}
	for _, r := range want(all) {
		if err := os.Remove(r.File); err != nil {
			errs = append(errs, fmt.Errorf("release %s: %w", r, err))
			continue
		}
		released = append(released, r)
		crash.At("release.removed")
	}
	return released, errors.Join(errs...)
}

// ErrLocked says that host-local's lock was not had in time.
var ErrLocked = errors.New("reservations are locked by another process")

// LockWait bounds the wait for host-local, which holds its lock for milliseconds: the journal is locked meanwhile.
const LockWait = 2 * time.Second

// lock takes the lock file that host-local itself takes (flock on <dir>/lock).
func lock(dir string, wait time.Duration) (unlock func(), err error) {
	fd, err := unix.Open(filepath.Join(dir, "lock"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, &fs.PathError{Op: "open reservation lock", Path: dir, Err: err}
	}
	got := make(chan error, 1)
	go func() {
		err := unix.Flock(fd, unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(fd, unix.LOCK_EX)
		}
		got <- err
	}()
	select {
	case err = <-got:
	case <-time.After(wait):
		go func() { <-got; unix.Close(fd) }() // it may still win later: then it lets go at once
		return nil, fmt.Errorf("%w: %s, for more than %s", ErrLocked, dir, wait)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("lock reservations in %s: %w", dir, err)
	}
	return func() { unix.Close(fd) }, nil
}
