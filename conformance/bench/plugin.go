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
	return p.exec(verb, fmt.Sprintf("measured-%s-%d", p.name, pod), pod.netns(), map[string]any{
		"cniVersion": "1.0.0",
		"interfaces": []map[string]string{{"name": pod.hostLink()}, {"name": "eth0", "sandbox": pod.netns()}},
		"ips":        []map[string]any{{"address": pod.address() + "/32", "interface": 1}},
	})
}

// seed has backstop record a pod that stands in the node beside those that are measured.
func seed(i int) error {
	return plugin{name: "backstop"}.exec("ADD", fmt.Sprintf("seed-%d", i), "/run/netns/seeds", map[string]any{
		"cniVersion": "1.0.0",
		"ips":        []map[string]any{{"address": seedAddress(i) + "/32"}},
	})
}

func (p plugin) exec(verb, container, netns string, prevResult any) error {
	config := map[string]any{"cniVersion": "1.0.0", "name": "bench", "type": p.name, "prevResult": prevResult}
	maps.Copy(config, p.config)
	stdin, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("writing the configuration of %s: %w", p.name, err)
	}
	cmd := exec.Command(p.name)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = []string{"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + container, "CNI_NETNS=" + netns,
		"CNI_IFNAME=eth0", "CNI_PATH=/nowhere", "PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s of %s for %s: %w: %s", verb, p.name, container, err, out)
	}
	return nil
}
