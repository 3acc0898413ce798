package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
)

// node compares the kernel and the runtime's caches with the records.
func (x *gathering) node(ctx context.Context) {
	cached, dead := x.caches()
	held := map[netip.Addr]string{}
	for _, e := range cached {
		for _, ip := range e.ips {
			held[ip] = "cache entry"
		}
	}
	for _, r := range x.records {
		for _, ip := range r.Addresses() {
			held[ip] = "record"
		}
	}
	if !x.samePaths {
		x.unread(errors.New("leftovers that no record explains: only the host itself, where the runtime is, can tell what is whose"))
		return
	}
	seen, whole := x.namespaces(held)
	if !whole {
		x.unread(errors.New("leftovers that no record explains: not every process's network namespace may be looked at"))
		return
	}
	x.veths(seen)
	x.rules(held, dead)
	x.reservations(ctx, held)
}

// cacheEntry is what is used of one.
type cacheEntry struct {
	key attachment.Key
	ips []netip.Addr
}

// caches reads those that entries and records name. It gives the entries that may be of live pods, and those of pods whose
// netns is gone.
func (x *gathering) caches() (live, dead []cacheEntry) {
	var dirs []string
	var networks []string
	for _, p := range x.settings {
		if d := p.settings.RuntimeCacheDir; d != "" && !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
		networks = append(networks, p.network)
	}
	for _, d := range dirs {
		c := Cache{Dir: d}
		names, err := os.ReadDir(filepath.Join(d, "results"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			x.unread(err)
			continue
		}
		c.There, c.Entries = err == nil, len(names)
		for _, n := range names {
			e, ok := reconcile.ParseCacheEntry(reconcile.ReadCacheEntry(filepath.Join(d, "results", n.Name())))
			if !ok {
				continue
			}
			one := cacheEntry{attachment.Key{Network: e.NetworkName, ContainerID: e.ContainerID, IfName: e.IfName}, attachment.ParseResult(e.Result).IPs}
			_, err := kernel.NamespaceAt(e.NetNS)
			switch _, recorded := x.records[one.key]; {
			case e.NetNS != "" && errors.Is(err, fs.ErrNotExist) && x.samePaths && !recorded:
				c.Stale++
				dead = append(dead, one)
				continue
			case err == nil && !recorded && slices.Contains(networks, e.NetworkName):
				c.Unknown = append(c.Unknown, one.key.String())
			}
			live = append(live, one)
		}
		x.f.Caches = append(x.f.Caches, c)
	}
	return live, dead
}

// namespaces looks into every network namespace that a process or a mount has: which ids the host knows them by, and who
// has which address. whole is false when not all could be seen.
func (x *gathering) namespaces(held map[netip.Addr]string) (seen map[int]bool, whole bool) {
	paths, err := filepath.Glob("/proc/[0-9]*/ns/net")
	paths = append(paths, mounted()...)
	seen, whole = map[int]bool{}, err == nil
	known := map[attachment.NamespaceID]bool{x.Env.Node.Netns: true}
	x.addresses(x.Host, held)
	for _, path := range paths {
		id, err := kernel.NamespaceAt(path)
		if errors.Is(err, fs.ErrPermission) {
			whole = false
		}
		if err != nil || known[id] {
			continue // a process that ended
		}
		pod, id, err := kernel.OpenPod(path, x.Env.Node)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			whole = false
			continue
		}
		known[id] = true
		if n := x.Host.NSID(path, id); n >= 0 {
			seen[n] = true
		}
		x.addresses(pod, held)
		pod.Close()
	}
	return seen, whole
}

func (x *gathering) addresses(h *kernel.Handle, held map[netip.Addr]string) {
	links, err := h.Links()
	if err != nil {
		x.unread(err)
	}
	for _, l := range links {
		as, err := h.Addresses(l)
		if err != nil {
			x.unread(err)
		}
		for _, a := range as {
			if p, err := netip.ParsePrefix(a.CIDR); err == nil {
				held[p.Addr()] = "interface " + l.Name
			}
		}
	}
}

// mounted gives the places where network namespaces are mounted (proc_pid_mountinfo(5)).
func mounted() (paths []string) {
	b, _ := os.ReadFile("/proc/thread-self/mountinfo")
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		i := slices.Index(fields, "-")
		if i > 4 && i+1 < len(fields) && fields[i+1] == "nsfs" && strings.HasPrefix(fields[3], "net:") {
			paths = append(paths, strings.ReplaceAll(fields[4], `\040`, " "))
		}
	}
	return paths
}

func (x *gathering) veths(seen map[int]bool) {
	recorded := map[int]bool{}
	for _, r := range x.records {
		if r.SameNode(x.Env.Node) {
			for _, l := range r.OwnLinks() {
				recorded[l.Index] = true
			}
		}
	}
	links, err := x.Host.Links()
	if err != nil {
		x.unread(err)
		return
	}
	for _, l := range links {
		if l.Kind == "veth" {
			x.f.Veths = append(x.f.Veths, Veth{Name: l.Name, Peer: l.Parent, Away: l.ParentNetnsID >= 0, Seen: seen[l.ParentNetnsID], Recorded: recorded[l.Index]})
		}
	}
}
