package plugin

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// cmdCheck compares the kernel with what was captured at ADD. It is silent on
// success and on additions: CRI-O calls it right after every ADD, so a false alarm breaks pod creation.
func cmdCheck(args *skel.CmdArgs) error {
	cfg, cerr := strict(args)
	if cerr != nil {
		return cerr
	}
	if cfg.PrevResult == nil {
		return fail(types.ErrInvalidNetworkConfig, "prevResult is missing: CHECK needs it", nil)
	}
	c, err := open(cfg, args, os.Stderr)
	if err != nil {
		return fail(types.ErrIOFailure, "backstop cannot read the node", err)
	}
	defer c.close()
	missing, err := c.check()
	if err != nil {
		// What cannot be read is not known to be missing.
		c.env.Log.WithFields(c.fields("check")).WithError(err).Warn("CHECK could not compare everything")
	}
	if len(missing) > 0 {
		return fail(codeCheckFailed, fmt.Sprintf("attachment %s has lost what it had after ADD", c.key), fmt.Errorf("missing: %s", strings.Join(missing, "; ")))
	}
	return nil
}

func (c *call) check() (missing []string, err error) {
	var rec *attachment.Record
	err = c.journal.ViewWithin(context.Background(), checkWait, func(tx *journal.Tx) (err error) { rec, err = tx.Get(c.key); return err })
	if err != nil || rec == nil || !rec.SameNode(c.env.Node) {
		return nil, err
	}
	for i, seen := range teardown.Observe(c.host, rec).Resources {
		x := rec.Resources[i]
		if x.Share == attachment.Own && !x.Superseded && seen.Err == nil && seen.Count == 0 {
			missing = append(missing, "on the node: "+x.String())
		}
	}
	if c.netns == "" || len(rec.Pod) == 0 {
		return missing, nil
	}
	pod, id, err := kernel.OpenPod(c.netns, c.env.Node)
	if err != nil {
		return append(missing, "the pod's netns "+c.netns), nil
	}
	defer pod.Close()
	if id != rec.NetnsID {
		return append(missing, "the pod's netns: another one is at "+c.netns), nil
	}
	got, err := kernel.Capture(c.host, kernel.Target{Result: attachment.ParseResult(rec.PrevResult), IfName: c.key.IfName, Pod: pod})
	if err != nil {
		return missing, err
	}
	now := attachment.Record{Resources: got.Pod}
	for _, x := range rec.Pod {
		if !now.Holds(x) {
			missing = append(missing, "in the pod: "+x.String())
		}
	}
	return missing, nil
}
