package adopt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/reconcile"
)

// look says what is against an attachment's netns, "" for nothing.
func (a *Adopter) look(add reconcile.Add) string {
	pod, _, err := kernel.OpenPod(add.Netns, a.Env.Node)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "its netns is gone: the pod is dead (`backstopctl gc --runtime-cache` removes entries of dead pods)"
	case errors.Is(err, kernel.ErrNotNetns):
		return "what is at its netns path is no network namespace: the pod is dead, or the runtime mounted it where it cannot be seen from here"
	case errors.Is(err, kernel.ErrHostNetns):
		return "its netns path leads to the host's own: a process id that is another process's by now, or a pod of the host's network"
	case err != nil:
		return "its netns cannot be entered: " + err.Error()
	}
	defer pod.Close()
	l, err := pod.LinkByName(add.Key.IfName)
	if err != nil {
		return "its netns cannot be read: " + err.Error()
	}
	if l == nil {
		return fmt.Sprintf("its netns has no interface %s", add.Key.IfName)
	}
	return ""
}

// capture reads what the attachment put into the node, and looks whether it is proven.
func (a *Adopter) capture(it *Item, add reconcile.Add) {
	r, err := a.Env.Record(a.Host, add)
	var own *attachment.Link
	for _, x := range r.Pod {
		if x.Link != nil && x.Link.Name == add.Key.IfName {
			own = x.Link
		}
	}
	switch {
	case err != nil:
		it.Why = "not everything could be read: " + err.Error()
	case own == nil:
		it.netns = attachment.NamespaceID{} // whose it is, this entry does not say
		it.Why = "its netns is another pod's: none of its addresses is there, or an interface leads elsewhere than its result says"
	case own.Kind == "veth" && !hasLink(r, own.Parent):
		it.Why = fmt.Sprintf("the other end of %s is not in this network namespace: run this on the host", own.Name)
	default:
		it.Verdict, it.record = Adopt, r
		for _, x := range r.Resources {
			it.Resources = append(it.Resources, x.String())
		}
	}
}

func hasLink(r *attachment.Record, index int) bool {
	for _, x := range r.Resources {
		if x.Link != nil && x.Link.Index == index {
			return true
		}
	}
	return false
}

// needs says what a later replay has to do without, and keeps what it has: some runtimes delete the entry with a DEL that
// fails.
func (a *Adopter) needs(it *Item, e reconcile.CacheEntry) {
	it.Missing = append(it.Missing, "CNI_PATH (until a DEL names it, a replay looks for the plugins in /opt/cni/bin)")
	if e.NetNS == "" {
		it.Missing = append(it.Missing, "the entry's netns (libcni before 1.2; the path is its result's)")
	}
	if len(e.Config) == 0 {
		it.Missing = append(it.Missing, "the list of its ADD (a replay uses the network's list of then)")
	}
	it.record.Replay = &attachment.Replay{CacheEntry: json.RawMessage(bytes.Clone(it.entry))}
	if file := reconcile.CacheFile(it.record.Settings.RuntimeCacheDir, *it.Key); file == it.File {
		it.record.Replay.CacheFile = file
	}
}
