package main

import (
	"encoding/json"
	"fmt"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// config is the plugin's entry in a conflist.
type config struct {
	types.NetConf
	Socket    string         `json:"socket"`
	Seen      string         `json:"seen"`      // directory for what a DEL saw when it began; "": none
	Rules     bool           `json:"rules"`     // add the two rules of an AWS-style primary
	Table     int            `json:"table"`     // the table that the second one leads to
	HostRoute bool           `json:"hostRoute"` // add a route to each address
	HostName  string         `json:"hostName"`  // what to call the host veth; "": as the delegate did
	Delegate  map[string]any `json:"delegate"`  // the reference plugin's own entry

	stdin []byte
}

func parseConfig(args *skel.CmdArgs) (*config, error) {
	c := config{stdin: args.StdinData}
	if err := json.Unmarshal(args.StdinData, &c); err != nil {
		return nil, types.NewError(types.ErrDecodingFailure, "reading the configuration", err.Error())
	}
	if _, ok := c.Delegate["type"].(string); !ok || c.Socket == "" {
		return nil, types.NewError(types.ErrInvalidNetworkConfig, "delegate.type and socket are required", "")
	}
	return &c, nil
}

// key is how the daemon names an attachment.
func (c *config) key(args *skel.CmdArgs) string {
	return c.Name + "/" + args.ContainerID + "/" + args.IfName
}

// delegateType is the reference plugin's name.
func (c *config) delegateType() string { return c.Delegate["type"].(string) }

// delegateConfig is what the reference plugin reads: its own entry, with what a runtime adds for each plugin.
func (c *config) delegateConfig() ([]byte, error) {
	var own map[string]any
	if err := json.Unmarshal(c.stdin, &own); err != nil {
		return nil, fmt.Errorf("reading the configuration again: %w", err)
	}
	for _, key := range []string{"cniVersion", "name", "prevResult", "runtimeConfig"} {
		if value, ok := own[key]; ok {
			c.Delegate[key] = value
		}
	}
	return json.Marshal(c.Delegate)
}
