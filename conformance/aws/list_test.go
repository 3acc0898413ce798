package aws

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// example is the list that users are told to have.
const example = "../../examples/aws-vpc-cni/10-aws.conflist"

// grace is short, and longer than a DEL here takes.
const grace = time.Second

// list writes the runtime's list: the example's, with what the row changes. Without backstop its last entry is missing.
func (n *node) list() error {
	b, err := os.ReadFile(example)
	if err != nil {
		return err
	}
	var list map[string]any
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("%s: %w", example, err)
	}
	var plugins []any
	for _, entry := range list["plugins"].([]any) {
		plugin := entry.(map[string]any)
		switch kind := plugin["type"]; {
		case kind == "aws-cni" && guest():
			plugin["podSGEnforcingMode"] = n.row.branch
		case kind == "egress-cni" && guest(), kind == "portmap" && guest():
			continue // they have nothing to do there, and each start takes the guest long
		case kind == "egress-cni":
			if n.row.egress != nil {
				plugin = n.row.egress
			}
		case kind == "backstop":
			plugins = append(plugins, n.row.plugins...)
			if n.mode == "" {
				continue
			}
			plugin["teardown"], plugin["grace"] = n.mode, grace.String()
		}
		plugins = append(plugins, plugin)
	}
	list["plugins"] = plugins
	if b, err = json.Marshal(list); err != nil {
		return err
	}
	return os.WriteFile("/etc/cni/net.d/10-aws.conflist", b, 0o600)
}

// neighbourList is a network of other plugins beside the AWS VPC CNI's. Its pod has a published port, so that the chains
// which the reference plugins share between pods are there at first, and something that has to stay is in each.
const neighbourList = `{"cniVersion": "1.0.0", "name": "neighbour", "plugins": [
	{"type": "ptp", "ipMasq": true, "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}], [{"subnet": "fd77::/64"}]]}},
	{"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}]}`

// neighbour attaches that pod. The guest has no netfilter.
func neighbour() error {
	if guest() {
		return nil
	}
	if err := os.WriteFile("/etc/cni/net.d/20-neighbour.conflist", []byte(neighbourList), 0o600); err != nil {
		return err
	}
	n := node{row: row{capabilities: `{"portMappings":[{"hostPort":9090,"containerPort":80,"protocol":"tcp"}]}`}}
	if err := script("netns add neighbour"); err != nil {
		return err
	}
	if code, out := n.cnitool("add", "neighbour", pod{sandbox: "neighbour"}, ""); code != 0 {
		return fmt.Errorf("ADD of the neighbour: exit code %d: %s", code, out)
	}
	return nil
}
