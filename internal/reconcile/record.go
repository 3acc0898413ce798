package reconcile

import (
	"encoding/json"
	"errors"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
)

// Add is what an ADD says of its attachment: the call itself or, later, the runtime's cache entry of it.
type Add struct {
	Key        attachment.Key
	Netns      string
	CNIVersion string
	CNIArgs    string // as in CNI_ARGS
	CNIPath    string // as in CNI_PATH; no cache entry has it
	PrevResult json.RawMessage
	Settings   attachment.Settings

	// Prove says that the netns path may lead to another pod by now: the namespace counts only if the result's addresses and
	// links are in it.
	Prove bool
	// Result is PrevResult, read. Rules, when set, is a rule dump that was begun ahead.
	Result attachment.Result
	Rules  *kernel.Ahead
}

// Record makes the record of an attachment from what its ADD says and the kernel. What could not be read is in the
// error, and the record has the rest.
func (e *Env) Record(host *kernel.Handle, a Add) (*attachment.Record, error) {
	r := &attachment.Record{
		Key: a.Key, State: attachment.Attached, Node: e.Node, Netns: a.Netns,
		CNIVersion: a.CNIVersion, CNIArgs: a.CNIArgs, CNIPath: a.CNIPath,
		PrevResult: a.PrevResult, Settings: a.Settings,
	}
	t := kernel.Target{Result: a.Result, IfName: a.Key.IfName, Prove: a.Prove, Rules: a.Rules}
	var podErr error
	if a.Netns != "" {
		t.Pod, r.NetnsID, podErr = kernel.OpenPod(a.Netns, e.Node)
	}
	if t.Pod != nil {
		defer t.Pod.Close()
		t.PodNSID = func() int { return host.NSID(a.Netns, r.NetnsID) }
	} else {
		r.NetnsID = attachment.NamespaceID{}
	}
	got, err := kernel.Capture(host, t)
	r.IPs, r.Resources, r.Pod = got.IPs, got.Resources, got.Pod
	return r, errors.Join(podErr, err)
}
