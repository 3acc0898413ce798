package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
)

// unexplained finds the mounted network namespaces with a veth to this node that neither a record nor a cache entry
// explains. They are told of and nothing more: without the entry nobody knows whose they are.
func (a *Adopter) unexplained(open map[attachment.Key]*attachment.Record, known []Item) (out []Item, err error) {
	if a.NetnsDir == "" {
		return nil, nil
	}
	names, err := os.ReadDir(a.NetnsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for network namespaces: %w", err)
	}
	explained := map[attachment.NamespaceID]bool{a.Env.Node.Netns: true}
	links := map[int]bool{}
	for _, r := range open {
		explained[r.NetnsID] = true
		for _, l := range r.OwnLinks() {
			links[l.Index] = true
		}
	}
	for _, it := range known {
		explained[it.netns] = true
	}
	for _, n := range names {
		path := filepath.Join(a.NetnsDir, n.Name())
		id, err := kernel.NamespaceAt(path)
		if err != nil || explained[id] {
			continue // a plain file is the mount of another mount namespace
		}
		if veths := a.veths(path, links); len(veths) > 0 {
			explained[id] = true // it may be mounted twice
			out = append(out, Item{Verdict: Left, Netns: path, Why: fmt.Sprintf(
				"its interface leads to this node's %s, and neither a record nor a cache entry names it: a pod whose entry is missing or damaged, one that is starting just now, or no runtime's", veths[0])})
		}
	}
	return out, nil
}

// veths are the node's links that lead into a namespace, but for those that a record has.
func (a *Adopter) veths(path string, recorded map[int]bool) (names []string) {
	pod, id, err := kernel.OpenPod(path, a.Env.Node)
	if err != nil {
		return nil
	}
	defer pod.Close()
	links, err := pod.Links()
	if err != nil {
		return nil
	}
	nsid := a.Host.NSID(path, id)
	for _, p := range links {
		if p.Kind != "veth" || recorded[p.Parent] {
			continue
		}
		l, err := a.Host.LinkByIndex(p.Parent)
		if err == nil && l != nil && l.Kind == "veth" && l.Parent == p.Index && l.ParentNetnsID == nsid && nsid >= 0 {
			names = append(names, l.Name)
		}
	}
	return names
}
