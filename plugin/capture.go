package plugin

import (
	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/reconcile"
)

// capture makes the record of the call's attachment from prevResult and the
// kernel. What could not be read is in the error, and the record has the rest. prove is for a DEL: its netns path may
// lead to another pod by now.
func (c *call) capture(prove bool) (*attachment.Record, error) {
	return c.env.Record(c.host, reconcile.Add{
		Key: c.key, Netns: c.netns, CNIVersion: c.cfg.CNIVersion, CNIArgs: c.cniArgs, CNIPath: c.cniPath,
		PrevResult: c.cfg.PrevResult, Settings: c.cfg.Settings(), Prove: prove, Result: c.result, Rules: c.rules,
	})
}
