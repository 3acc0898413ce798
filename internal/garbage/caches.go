package garbage

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"unique"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/reconcile"
)

// Caches is what the runtime's caches have. It may be a lot, and is read before the journal's lock is taken: a pod that
// came since has its record.
type Caches struct {
	entries    map[owner]entry
	containers map[string][]owner // nil until somebody asks
	err        error              // what could not be read
}

// entry is what is used of libcni's cache entry (libcni/api.go, cachedInfo) beside its owner. Hundreds of thousands were seen.
type entry struct {
	netns string
	dir   unique.Handle[string] // the runtime's
	file  string                // its name, where that is not the owner's
}

// path is the entry's file.
func (e entry) path(o owner) string {
	if e.file != "" {
		return filepath.Join(e.dir.Value(), "results", e.file)
	}
	return reconcile.CacheFile(e.dir.Value(), o.key())
}

// ReadCaches reads the entries below some runtimes' cache directories; none for none.
func ReadCaches(dirs []string) *Caches {
	c := &Caches{entries: map[owner]entry{}}
	for _, d := range dirs {
		c.err = errors.Join(c.err, c.read(d))
	}
	return c
}

// of gives the interfaces of a container.
func (c *Caches) of(container string) []owner {
	if c.containers == nil {
		c.containers = map[string][]owner{}
		for o := range c.entries {
			c.containers[o.container] = append(c.containers[o.container], o)
		}
	}
	return c.containers[container]
}

func (c *Caches) read(dir string) error {
	results := filepath.Join(dir, "results")
	d, err := os.Open(results)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1024) // in portions
		for _, n := range names {
			c.add(dir, results, n)
		}
		if len(names) == 0 || err != nil {
			return nil
		}
	}
}

func (c *Caches) add(dir, results, name string) {
	var e struct {
		ContainerID string `json:"containerId"`
		IfName      string `json:"ifName"`
		NetworkName string `json:"networkName"`
		NetNS       string `json:"netns"`
	}
	if json.Unmarshal(reconcile.ReadCacheEntry(filepath.Join(results, name)), &e) != nil || e.ContainerID == "" {
		return
	}
	// Their names are the same few.
	o := owner{unique.Make(e.NetworkName).Value(), e.ContainerID, unique.Make(e.IfName).Value()}
	in := entry{netns: e.NetNS, dir: unique.Make(dir)}
	if name != filepath.Base(reconcile.CacheFile(dir, attachment.Key{Network: o.network, ContainerID: o.container, IfName: o.ifName})) {
		in.file = name
	}
	c.entries[o] = in
}
