package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
)

// entries judges each entry of the caches. Of two of the same attachment the first counts.
func (a *Adopter) entries(lists map[string]conflist.File, open map[attachment.Key]*attachment.Record) (out []Item, err error) {
	seen := map[attachment.Key]bool{}
	for _, cache := range a.Caches {
		dir := filepath.Join(cache, "results")
		names, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the runtime's cache: %w", err)
		}
		for _, n := range names {
			file := filepath.Join(dir, n.Name())
			e, raw, ok := read(file)
			if !ok {
				if a.Network == "" || strings.HasPrefix(n.Name(), a.Network+"-") {
					out = append(out, damaged(file))
				}
				continue
			}
			key := attachment.Key{Network: e.NetworkName, ContainerID: e.ContainerID, IfName: e.IfName}
			if seen[key] || a.Network != "" && a.Network != e.NetworkName {
				continue
			}
			seen[key] = true
			it := Item{Key: &key, File: file, entry: raw}
			a.judge(&it, cache, e, lists, open[key])
			out = append(out, it)
		}
	}
	return out, nil
}

func read(file string) (e reconcile.CacheEntry, raw []byte, ok bool) {
	raw = reconcile.ReadCacheEntry(file)
	e, ok = reconcile.ParseCacheEntry(raw)
	return e, raw, ok
}

// damaged says of an entry why it tells nothing: a node that crashed leaves empty and half files.
func damaged(file string) Item {
	it := Item{Verdict: Left, File: file}
	fi, err := os.Lstat(file)
	switch {
	case err != nil:
		it.Why = "the cache entry cannot be read: " + err.Error()
	case !fi.Mode().IsRegular():
		it.Why = "the cache entry is not a regular file"
	case fi.Size() == 0:
		it.Why = "the cache entry is empty: nothing says which addresses and which list its pod has"
	default:
		it.Why = "the cache entry is damaged: nothing says for sure which addresses and which list its pod has"
	}
	return it
}

// judge decides one entry. Only what is proven by the result and the kernel together is adopted.
func (a *Adopter) judge(it *Item, cache string, e reconcile.CacheEntry, lists map[string]conflist.File, rec *attachment.Record) {
	it.Verdict, it.Netns = Left, e.NetNS
	list, ours := lists[e.NetworkName]
	if it.Netns == "" {
		it.Netns = sandbox(e)
	}
	it.netns, _ = kernel.NamespaceAt(it.Netns)
	switch {
	case rec != nil:
		it.Verdict, it.Why = Recorded, "in the journal, "+string(rec.State)
		return
	case !ours:
		it.Verdict, it.Why = Other, fmt.Sprintf("no list of network %s in %s has an entry of backstop", e.NetworkName, a.ConfDir)
		return
	case it.Key.Valid() != nil:
		it.Why = it.Key.Valid().Error()
		return
	case it.Netns == "":
		it.Why = "the cache entry names no netns (libcni before 1.2), nor does its result: nothing leads to the pod"
		return
	}
	add, why := a.add(e, list)
	if why != "" {
		it.Why = why
		return
	}
	add.Netns, add.Settings.RuntimeCacheDir = it.Netns, cache
	if len(add.Result.IPs) == 0 {
		it.Why = "its result names no address: nothing proves that what is in its netns is its own"
		return
	}
	if it.Why = a.look(add); it.Why == "" {
		a.capture(it, add)
	}
	if it.Verdict == Adopt {
		a.needs(it, e)
	}
}

// sandbox is the netns that the result gives for the interface.
func sandbox(e reconcile.CacheEntry) string {
	for _, i := range attachment.ParseResult(e.Result).Interfaces {
		if i.Name == e.IfName && filepath.IsAbs(i.Sandbox) {
			return i.Sandbox
		}
	}
	return ""
}
