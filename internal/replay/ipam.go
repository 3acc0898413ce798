package replay

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/ipam"
	"github.com/backstop-cni/backstop/journal"
	"github.com/containernetworking/cni/pkg/invoke"
)

// releases reports whether the record's ipam key names a plugin that has to be
// run. host-local's files were released with the teardown.
func releases(r *attachment.Record) bool {
	c, err := ipam.Parse(r.Settings.IPAM)
	return err == nil && c.Type != "" && c.Type != ipam.HostLocal && !r.Released
}

// release runs the DEL of the ipam key's plugin while the primary is away, with
// the configuration that the key has. The record stays owed: the primary still has to acknowledge. One of an earlier boot has
// nothing else to wait for.
func (p *Replayer) release(ctx context.Context, res *Result) error {
	rec, err := p.owed(ctx, res)
	if err != nil || rec == nil || !releases(rec) {
		return err
	}
	c, err := ipam.Parse(rec.Settings.IPAM)
	if err != nil {
		return err
	}
	conf, err := json.Marshal(map[string]any{
		"cniVersion": rec.CNIVersion, "name": rec.Network, "type": c.Type, "ipam": rec.Settings.IPAM, "prevResult": rec.PrevResult,
	})
	if err != nil {
		return fmt.Errorf("configuration of IPAM plugin %s: %w", c.Type, err)
	}
	paths := pluginPath(rec)
	plugin, err := invoke.FindInPath(c.Type, paths)
	if err != nil {
		return fmt.Errorf("find IPAM plugin %s: %w", c.Type, err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	args := &invoke.Args{
		Command: "DEL", ContainerID: rec.ContainerID, NetNS: p.livingNetns(rec), IfName: rec.IfName,
		PluginArgsStr: rec.CNIArgs, Path: joinPath(paths),
	}
	if err := invoke.ExecPluginWithoutResult(ctx, plugin, conf, args, nil); err != nil {
		return fmt.Errorf("DEL of IPAM plugin %s for %s: %w", c.Type, rec.Key, err)
	}
	res.Released = true
	return p.Journal.UpdateWithin(ctx, p.LockWait, func(tx *journal.Tx) error {
		r, err := tx.Get(rec.Key)
		if err != nil || r == nil || r.State != attachment.Owed {
			return err
		}
		r.Released = true
		r.Note(p.Env.Now(), "addresses released by IPAM plugin %s", c.Type)
		if !r.SameNode(p.Env.Node) {
			if err := journal.Move(r, attachment.Closed); err != nil {
				return err
			}
		}
		return tx.Put(r)
	})
}
