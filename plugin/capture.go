package plugin

import (
	"errors"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
)

// capture makes the record of the call's attachment from prevResult and the
// kernel. What could not be read is in the error, and the record has the rest. prove is for a DEL: its netns path may
// lead to another pod by now.
func (c *call) capture(prove bool) (*attachment.Record, error) {
	r := &attachment.Record{
		Key: c.key, State: attachment.Attached, Node: c.env.Node, Netns: c.netns,
		CNIVersion: c.cfg.CNIVersion, CNIArgs: c.cniArgs, CNIPath: c.cniPath,
		PrevResult: c.cfg.PrevResult, Settings: c.cfg.Settings(),
	}
	t := kernel.Target{Result: c.result, IfName: c.key.IfName, Prove: prove, Rules: c.rules}
	var podErr error
	if c.netns != "" {
		t.Pod, r.NetnsID, podErr = kernel.OpenPod(c.netns, c.env.Node)
	}
	if t.Pod != nil {
		defer t.Pod.Close()
		t.PodNSID = func() int { return c.host.NSID(c.netns, r.NetnsID) }
	} else {
		r.NetnsID = attachment.NamespaceID{}
	}
	got, err := kernel.Capture(c.host, t)
	r.IPs, r.Resources, r.Pod = got.IPs, got.Resources, got.Pod
	return r, errors.Join(podErr, err)
}
