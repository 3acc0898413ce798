package replay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/containernetworking/cni/libcni"
)

// cached is an entry of the runtime's cache that can be made one of a private cache.
type cached struct{ reconcile.CacheEntry }

// recall takes the runtime's entry of now where no DEL came that could have noted
// it: the list and the arguments of the ADD are better than the list of today.
func recall(r *attachment.Record) {
	if r.Replay != nil && len(r.Replay.CacheEntry) > 0 {
		return
	}
	file := reconcile.CacheFile(r.Settings.RuntimeCacheDir, r.Key)
	e := reconcile.ReadCacheEntry(file)
	var c cached
	if json.Unmarshal(e, &c) != nil || c.ContainerID != r.ContainerID || c.IfName != r.IfName {
		return
	}
	if r.Replay == nil {
		r.Replay = &attachment.Replay{}
	}
	r.Replay.CacheFile, r.Replay.CacheEntry = file, e
}

// entry gives the cache entry to replay with: the runtime's or, where it had
// none, one made from the record and the conflist of now.
func entry(r *attachment.Record, confDir string) (cached, error) {
	var c cached
	recall(r)
	if r.Replay != nil && len(r.Replay.CacheEntry) > 0 {
		if err := json.Unmarshal(r.Replay.CacheEntry, &c); err == nil && len(c.Config) > 0 {
			return c, nil
		}
	}
	list, err := conflist.ByName(confDir, r.Network)
	if err != nil {
		return c, fmt.Errorf("the runtime's cache had no entry, and no list is left to replay: %w", err)
	}
	return cached{reconcile.CacheEntry{
		Kind: libcni.CNICacheV1, ContainerID: r.ContainerID, Config: list, IfName: r.IfName, NetworkName: r.Network,
		NetNS: r.Netns, CNIArgs: splitArgs(r.CNIArgs), Result: r.PrevResult,
	}}, nil
}

func splitArgs(s string) (out [][2]string) {
	for _, kv := range strings.Split(s, ";") {
		if k, v, ok := strings.Cut(kv, "="); ok {
			out = append(out, [2]string{k, v})
		}
	}
	return out
}

// belongs wants the entry, and the list in it, to be this attachment's: both names become file names, and tell the plugins
// whose state to remove.
func (c cached) belongs(k attachment.Key, list string) error {
	if got := (attachment.Key{Network: c.NetworkName, ContainerID: c.ContainerID, IfName: c.IfName}); got != k {
		return fmt.Errorf("the recorded cache entry is of %q, not of %s: it is not replayed", got, k)
	}
	if list != k.Network {
		return fmt.Errorf("the recorded list is of network %q, not of %s: it is not replayed", list, k)
	}
	return nil
}

// store writes the entry into a private cache directory, with the rest of the
// list in place of the whole.
func (c cached) store(dir string, k attachment.Key) error {
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode cache entry of %s: %w", k, err)
	}
	results := filepath.Join(dir, "results")
	if err := os.Mkdir(results, 0o700); err != nil {
		return fmt.Errorf("make private cache directory: %w", err)
	}
	file := reconcile.CacheFile(dir, k)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return fmt.Errorf("write private cache entry: %w", err)
	}
	return nil
}
