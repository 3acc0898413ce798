package plugin

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/crash"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/internal/version"
	"github.com/backstop-cni/backstop/journal"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	cniversion "github.com/containernetworking/cni/pkg/version"
)

// How long a verb waits for the journal's lock. kubelet gives a call two minutes.
const (
	lockWait   = 15 * time.Second
	checkWait  = 2 * time.Second        // CRI-O calls CHECK right after each ADD
	statusTime = 700 * time.Millisecond // STATUS answers within a second
	statusLock = 100 * time.Millisecond // of which it waits so long for the journal's lock
)

// Run serves the verb that the environment names and gives the exit code. The
// caller's goroutine must be locked to the main thread since the start of the process.
func Run(stdin io.Reader, stdout, stderr io.Writer) int {
	crash.At("plugin.begun")
	deepStack(false)
	if os.Getenv("CNI_COMMAND") == "DEL" {
		return runDel(stdin, stdout, stderr)
	}
	var rules *kernel.Ahead
	if os.Getenv("CNI_COMMAND") == "ADD" {
		rules = kernel.RulesAhead()
	}
	add := func(args *skel.CmdArgs) error { return cmdAdd(args, rules) }
	funcs := skel.CNIFuncs{Add: add, Check: cmdCheck, GC: cmdGC, Status: cmdStatus,
		Del: func(*skel.CmdArgs) error { return nil }} // DEL does not go through skel: docs/decisions
	about := "backstop " + version.Version + ", a chained CNI plugin that remembers and tears down: place it last in a conflist"
	if err := skel.PluginMainFuncsWithError(funcs, cniversion.All, about); err != nil {
		if perr := err.Print(); perr != nil {
			fmt.Fprintln(stderr, "backstop: write error result:", perr)
		}
		return 1
	}
	return 0
}

// call is one invocation for one attachment.
type call struct {
	cfg     *Config
	key     attachment.Key
	netns   string
	cniArgs string
	cniPath string
	env     *reconcile.Env
	host    *kernel.Handle
	journal *journal.Journal
	close   func()
	flawed  bool // the configuration has problems, and defaults stand in
	result  attachment.Result
	listed  map[GCAttachment]bool // what a GC's runtime says is there
	rules   *kernel.Ahead         // begun before anything else; nil where the rules are read on demand
}

// open prepares a call: log, node and the host's kernel.
func open(cfg *Config, args *skel.CmdArgs, stderr io.Writer) (*call, error) {
	log, closeLog := newLogger(cfg, stderr)
	c := &call{
		cfg: cfg, key: attachment.Key{Network: cfg.Name, ContainerID: args.ContainerID, IfName: args.IfName},
		netns: args.Netns, cniArgs: args.Args, cniPath: args.Path, journal: journal.At(cfg.Journal), close: closeLog,
		env: &reconcile.Env{Log: log}, result: attachment.ParseResult(cfg.PrevResult),
	}
	if len(cfg.Unknown) > 0 {
		log.WithFields(c.fields("config")).Warnf("unknown keys are ignored: %s", strings.Join(cfg.Unknown, ", "))
	}
	node, err := kernel.ReadNode()
	if err != nil {
		closeLog()
		return nil, fmt.Errorf("read where backstop runs: %w", err)
	}
	if c.host, err = kernel.OpenHost(); err != nil {
		closeLog()
		return nil, err
	}
	c.env.Node, c.env.Kernel, c.env.Call = node, c.host, c.key
	c.close = func() { c.host.Close(); closeLog() }
	crash.At("plugin.opened")
	return c, nil
}

func (c *call) fields(action string) map[string]any {
	return map[string]any{"network": c.key.Network, "containerID": c.key.ContainerID, "ifName": c.key.IfName, "action": action}
}

// session takes the journal's lock.
func (c *call) session() (*journal.Session, error) {
	return c.journal.LockWithin(context.Background(), lockWait)
}

// warn says which defaults stand in for what the configuration should say: DEL
// and GC must not stop the list for it.
func (c *call) warn(problems []Problem) {
	c.flawed = len(problems) > 0
	for _, p := range problems {
		c.env.Log.WithFields(c.fields("config")).WithError(p).Warn("key cannot be used, its default is in force")
	}
}

// strict reads the configuration for a verb that may refuse.
func strict(args *skel.CmdArgs) (*Config, *types.Error) {
	cfg, problems, err := ParseConfig(args.StdinData)
	if err != nil {
		return nil, fail(types.ErrDecodingFailure, err.Error(), nil)
	}
	if len(problems) > 0 {
		return nil, badConfig(problems)
	}
	return cfg, nil
}
