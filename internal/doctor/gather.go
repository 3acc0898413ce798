package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/netfilter"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/internal/version"
	"golang.org/x/sys/unix"
)

// Gatherer reads the facts of one node. It changes nothing: the journal's lock is taken for its reading, as by any reader.
type Gatherer struct {
	Env      *reconcile.Env
	Host     *kernel.Handle
	ConfDir  string
	BinDir   string
	Journal  string // "": those that the conflists name, or the default
	LockWait time.Duration
}

// gathering is one look, with what its parts tell each other.
type gathering struct {
	*Gatherer
	f *Facts
	// settings are of every entry and record, by network: where caches and reservations are.
	settings  []place
	records   map[attachment.Key]*attachment.Record
	past      map[attachment.Key]*attachment.Record // closed, the latest of each
	subnets   []subnet
	aws       bool
	elsewhere bool // this is not where the records were made
	samePaths bool // a netns path means here what it meant to the runtime
}

type place struct {
	network  string
	settings attachment.Settings
}

// Gather reads everything. What cannot be read is in Facts.Unread, and holds up nothing else.
func (g *Gatherer) Gather(ctx context.Context) (*Facts, error) {
	x := &gathering{Gatherer: g, f: &Facts{Version: version.Version, ConfDir: g.ConfDir}, records: map[attachment.Key]*attachment.Record{}, past: map[attachment.Key]*attachment.Record{},
		samePaths: kernel.WithFirstProcess(g.Env.Node.Mount)}
	if err := x.lists(ctx); err != nil {
		return nil, err
	}
	x.plugin(ctx)
	for i := range x.f.Journals {
		x.journal(ctx, &x.f.Journals[i])
	}
	if err := x.machine(); err != nil {
		return nil, err
	}
	switch {
	case x.elsewhere:
		x.unread(reconcile.ErrElsewhere)
	default:
		x.node(ctx)
	}
	return x.f, nil
}

func (x *gathering) unread(err error) { x.f.Unread = append(x.f.Unread, err.Error()) }

// machine reads what is the kernel's and the processes'.
func (x *gathering) machine() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("read the kernel's release: %w", err)
	}
	x.f.Kernel = unix.ByteSliceToString(u.Release[:])
	var err error
	if x.f.Legacy, err = netfilter.Legacy(); err != nil {
		x.unread(err)
	}
	x.f.Agents, err = agents()
	if err != nil {
		x.unread(err)
	}
	return nil
}

// agents counts the processes that are `backstopctl agent`.
func agents() (n int, err error) {
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range procs {
		b, rerr := os.ReadFile(p)
		if errors.Is(rerr, os.ErrPermission) {
			err = fmt.Errorf("look for the agent: %w", rerr)
		}
		args := strings.Split(string(b), "\x00")
		if filepath.Base(args[0]) != "backstopctl" {
			continue
		}
		for _, a := range args[1:] {
			if a == "agent" {
				n++
				break
			}
		}
	}
	return n, err
}
