package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/backstop-cni/backstop/internal/crash"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/primary"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/journal"
	"github.com/containernetworking/cni/libcni"
)

// Verdict is what a replay does, or did, with an owed record.
type Verdict string

const (
	Ready   Verdict = "replay"  // would run, or ran
	Blocked Verdict = "blocked" // a live attachment holds the address by now
	Away    Verdict = "away"    // the primary does not answer
	Early   Verdict = "early"   // the runtime may still come back by itself
)

// Result is one record's.
type Result struct {
	Key     attachment.Key `json:"attachment"`
	Verdict Verdict        `json:"verdict"`
	Why     string         `json:"why,omitempty"`
	Done    bool           `json:"done"` // the primary acknowledged
	// Released says that the ipam key's plugin was run while the primary is away.
	Released bool  `json:"released,omitempty"`
	Err      error `json:"-"`
	releases bool  // Run would run the ipam key's plugin
}

// Runs reports whether Run would run anything for it.
func (r Result) Runs() bool { return r.Verdict == Ready || (r.Verdict == Away && r.releases) }

// Replayer replays. Automatic says that no person asked for it: then the grace
// since the last DEL is waited for, in which the runtime's own retry comes.
type Replayer struct {
	Env       *reconcile.Env
	Journal   *journal.Journal
	ConfDir   string
	Automatic bool
	Timeout   time.Duration // for the whole list of one attachment
	LockWait  time.Duration // for the journal's lock, each time
}

// Plan says what Run would do with each owed record that want selects.
func (p *Replayer) Plan(ctx context.Context, want func(*attachment.Record) bool) ([]Result, error) {
	var owed []*attachment.Record
	var out []Result
	err := p.Journal.ViewWithin(ctx, p.LockWait, func(tx *journal.Tx) error {
		bad := tx.Each(func(r *attachment.Record) error {
			if r.State != attachment.Owed || !want(r) {
				return nil
			}
			owed = append(owed, r)
			res := Result{Key: r.Key, Verdict: Ready, releases: releases(r)}
			if holder, err := p.holder(tx, r); err != nil {
				res.Verdict, res.Why = Blocked, "who holds its address cannot be read: "+err.Error()
			} else if holder != "" {
				res.Verdict, res.Why = Blocked, "its address or link is held by "+holder
			}
			out = append(out, res)
			return nil
		})
		if bad != nil { // one record that cannot be read keeps no other from being replayed
			p.Env.Log.WithField("action", "replay").WithError(bad).Warn("not every record could be looked at")
		}
		return nil
	})
	for i, r := range owed {
		switch {
		case out[i].Verdict == Blocked:
		case p.Automatic && r.Del != nil && r.Del.Last.Since(p.Env.Now()) < r.Settings.Grace:
			out[i].Verdict, out[i].Why = Early, "the grace since the last DEL is not over"
		case len(r.Settings.Probe) > 0 && !primary.Reachable(ctx, r.Settings.Probe, r.Settings.ProbeTimeout):
			out[i].Verdict, out[i].Why = Away, "the primary does not answer"
		}
	}
	return out, err
}

// holder names a live attachment, or one that may be, with one of the record's addresses, container and interface, or
// link names that its primary goes by: replaying now would take from it what is in use.
func (p *Replayer) holder(tx *journal.Tx, r *attachment.Record) (string, error) {
	for _, ip := range r.IPs {
		cs, err := tx.ByIP(ip)
		if err != nil {
			return "", err
		}
		for _, c := range cs {
			if c.Key == r.Key || p.Env.Life(c) == attachment.Dead {
				continue
			}
			// An earlier ADD of the same key may have had the address: then it is in the index, and nobody's.
			if o, err := tx.Get(c.Key); err == nil && o != nil && len(o.IPs) > 0 && !slices.Contains(o.IPs, ip) {
				continue
			}
			return c.Key.String(), nil
		}
	}
	keys, err := tx.ByContainer(r.ContainerID, r.IfName)
	for _, l := range r.OwnLinks() {
		// A veth goes with its pod. Others are removed by their names: aws-cni computes a branch ENI's from its vlan id.
		if err == nil && l.Kind != "veth" {
			var named []attachment.Key
			named, err = tx.ByLinkName(l.Name, l.Index)
			keys = append(keys, named...)
		}
	}
	if err != nil {
		return "", err
	}
	for _, k := range keys {
		if o, err := tx.Get(k); err == nil && o != nil && k != r.Key && p.Env.Life(o.Claim()) != attachment.Dead {
			return k.String(), nil
		}
	}
	return p.unrecorded(r), nil
}

// unrecorded looks for a pod that the journal does not know, or not yet: a host route to the address
// over a link that is not this attachment's, or a new interface in the place of the one that was torn down.
func (p *Replayer) unrecorded(r *attachment.Record) string {
	for _, ip := range r.IPs {
		rt, err := p.Env.Kernel.RouteTo(ip)
		if err != nil {
			return "whoever the kernel would not tell of: " + err.Error()
		}
		if rt != nil && rt.Dst == ip.String() && rt.Type == "" && !r.OwnLink(rt.Oif) && !r.Holds(attachment.Resource{Kind: attachment.KindRoute, Route: rt}) {
			return fmt.Sprintf("whoever is behind link %d, over which its host route leaves", rt.Oif)
		}
	}
	netns := p.livingNetns(r)
	if netns == "" {
		return ""
	}
	pod, _, err := kernel.OpenPod(netns, p.Env.Node)
	if err != nil {
		return ""
	}
	defer pod.Close()
	l, err := pod.LinkByName(r.IfName)
	if err != nil || l == nil {
		return ""
	}
	for _, x := range r.Pod {
		if x.Link != nil && x.Link.Name == r.IfName && x.Link.Index != l.Index {
			return "a newer interface of the same container, which is not recorded yet"
		}
	}
	return ""
}

// Run replays what Plan found ready, one after the other, and settles the
// records. Only one process replays a journal at a time.
func (p *Replayer) Run(ctx context.Context, planned []Result) ([]Result, error) {
	unlock, err := p.Journal.Exclusive("replay")
	if err != nil {
		return planned, err
	}
	defer unlock()
	p.clear()
	for i := range planned {
		if ctx.Err() != nil {
			break
		}
		switch planned[i].Verdict {
		case Ready:
			planned[i].Err = p.one(ctx, &planned[i])
		case Away:
			planned[i].Err = p.release(ctx, &planned[i])
		}
	}
	return planned, ctx.Err()
}

// clear removes the private directories of replays that were killed. Nobody else
// has one now.
func (p *Replayer) clear() {
	stale, _ := filepath.Glob(filepath.Join(filepath.Dir(p.Journal.Path()), privatePrefix+"*"))
	for _, dir := range stale {
		os.RemoveAll(dir)
	}
}

// privatePrefix begins the names of the private cache directories.
const privatePrefix = "replay-"

// owed reads the record again, with who holds its address by now: pods may have
// started since the plan. nil when there is nothing to do, or no more.
func (p *Replayer) owed(ctx context.Context, res *Result) (rec *attachment.Record, err error) {
	holder := ""
	err = p.Journal.ViewWithin(ctx, p.LockWait, func(tx *journal.Tx) error {
		r, err := tx.Get(res.Key)
		if err != nil || r == nil || r.State != attachment.Owed {
			return err
		}
		rec = r
		holder, err = p.holder(tx, r)
		return err
	})
	if err != nil || rec == nil || holder == "" {
		return rec, err
	}
	res.Verdict, res.Why = Blocked, "its address or link is held by "+holder
	return nil, nil
}

func (p *Replayer) one(ctx context.Context, res *Result) error {
	rec, err := p.owed(ctx, res)
	if err != nil {
		return err
	}
	if rec == nil {
		if res.Verdict == Blocked {
			return p.note(ctx, res, nil)
		}
		return nil
	}
	crash.At("replay.begun")
	err = p.del(ctx, rec)
	res.Done = err == nil
	crash.At("replay.told") // the primary knows, the journal does not
	return errors.Join(err, p.note(ctx, res, err))
}

// del runs the rest of the list, on a private cache directory.
func (p *Replayer) del(ctx context.Context, rec *attachment.Record) error {
	c, err := entry(rec, p.ConfDir)
	if err != nil {
		return err
	}
	rest, left, err := conflist.Without(c.Config, "backstop")
	if err != nil {
		return fmt.Errorf("read the recorded list of %s: %w", rec.Key, err)
	}
	if left == 0 {
		return nil // backstop was alone: nobody to tell
	}
	c.Config = rest
	list, err := libcni.ConfListFromBytes(rest)
	if err != nil {
		return fmt.Errorf("read the recorded list of %s: %w", rec.Key, err)
	}
	if err := c.belongs(rec.Key, list.Name); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(p.Journal.Path()), privatePrefix)
	if err != nil {
		return fmt.Errorf("make private cache directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := c.store(dir, rec.Key); err != nil {
		return err
	}
	crash.At("replay.private")
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	cni := libcni.NewCNIConfigWithCacheDir(pluginPath(rec), dir, nil)
	rt := &libcni.RuntimeConf{ContainerID: c.ContainerID, IfName: c.IfName, NetNS: p.livingNetns(rec), Args: c.CNIArgs, CapabilityArgs: c.CapabilityArgs}
	if err := cni.DelNetworkList(ctx, list, rt); err != nil {
		return fmt.Errorf("DEL of the rest of network %q for %s: %w", list.Name, rec.Key, err)
	}
	crash.At("replay.acknowledged")
	forgetCacheEntry(rec)
	return nil
}

// livingNetns is the recorded path if the recorded namespace is still there: a
// path of /proc may by now lead to another pod, or to the host. After a reboot the inodes are given out anew.
func (p *Replayer) livingNetns(r *attachment.Record) string {
	if id, err := kernel.NamespaceAt(r.Netns); err == nil && id == r.NetnsID && r.SameNode(p.Env.Node) {
		return r.Netns
	}
	return ""
}

func joinPath(paths []string) string { return strings.Join(paths, string(filepath.ListSeparator)) }

func pluginPath(r *attachment.Record) []string {
	if r.Replay != nil && r.Replay.CNIPath != "" {
		return filepath.SplitList(r.Replay.CNIPath)
	}
	if r.CNIPath != "" {
		return filepath.SplitList(r.CNIPath)
	}
	return []string{"/opt/cni/bin"}
}

// forgetCacheEntry does for the runtime what libcni does after a DEL of the
// whole list, unless the entry is another one by now.
func forgetCacheEntry(r *attachment.Record) {
	if r.Replay == nil || r.Replay.CacheFile == "" {
		return
	}
	// A path is taken from a record only if the attachment's own names make it.
	file := reconcile.CacheFile(filepath.Dir(filepath.Dir(r.Replay.CacheFile)), r.Key)
	if file != r.Replay.CacheFile {
		return
	}
	if now := reconcile.ReadCacheEntry(file); now != nil && bytes.Equal(compact(now), compact(r.Replay.CacheEntry)) {
		os.Remove(file)
	}
}
