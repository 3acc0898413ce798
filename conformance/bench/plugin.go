package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
)

// plugin is a CNI plugin as a runtime calls it, last in a chain.
type plugin struct {
	name   string
	config map[string]any
}

// call calls the plugin for a pod, with the prevResult that a ptp-like primary hands on.
func (p plugin) call(verb string, pod pod) error {
	return p.exec(verb, fmt.Sprintf("measured-%s-%d", p.name, pod), pod.netns(), pod.result(pod.address()))
}

// result is a prevResult with the pod's links, and an address.
func (p pod) result(address string) any {
	return map[string]any{
		"cniVersion": "1.0.0",
		"interfaces": []map[string]string{{"name": p.hostLink()}, {"name": "eth0", "sandbox": p.netns()}},
		"ips":        []map[string]any{{"address": address + "/32", "interface": 1}},
	}
}

// seed has backstop record an attachment that stands in the node beside those that are measured.
func seed(i state) error {
	return plugin{name: "backstop"}.addSeed(i, fmt.Sprintf("seed-%d", i))
}

func (p plugin) addSeed(i state, container string) error {
	netns := fmt.Sprintf("/run/netns/seed%d", i)
	return p.exec("ADD", container, netns, map[string]any{
		"cniVersion": "1.0.0",
		"interfaces": []map[string]string{{"name": fmt.Sprintf("seed%d", i)}, {"name": "eth0", "sandbox": netns}},
		"ips":        []map[string]any{{"address": i.address() + "/32", "interface": 1}},
	})
}

func (p plugin) exec(verb, container, netns string, prevResult any) error {
	cmd, err := p.command(verb, container, netns, prevResult)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s of %s for %s: %w: %s", verb, p.name, container, err, out)
	}
	return nil
}

// command is a call that has not begun.
func (p plugin) command(verb, container, netns string, prevResult any) (*exec.Cmd, error) {
	config := map[string]any{"cniVersion": "1.0.0", "name": "bench", "type": p.name, "prevResult": prevResult}
	maps.Copy(config, p.config)
	stdin, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration of %s: %w", p.name, err)
	}
	cmd := exec.Command(p.name)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = []string{"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + container, "CNI_NETNS=" + netns,
		"CNI_IFNAME=eth0", "CNI_PATH=/nowhere", "PATH=" + os.Getenv("PATH")}
	return cmd, nil
}
