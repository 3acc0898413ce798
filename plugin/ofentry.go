package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/reconcile"
)

// ErrNoEntry says that a list has no entry of backstop.
var ErrNoEntry = errors.New("the list has no entry of backstop")

// OfEntry gives the ADD that an entry of the runtime's cache tells of, as if backstop had been the last of list: the
// entry's own or, for a pod from before backstop, today's. Problems are the list's, and defaults stand in for them.
func OfEntry(e reconcile.CacheEntry, list []byte) (reconcile.Add, *Config, []Problem, error) {
	var l struct {
		CNIVersion string                       `json:"cniVersion"`
		Plugins    []map[string]json.RawMessage `json:"plugins"`
	}
	if err := json.Unmarshal(list, &l); err != nil {
		return reconcile.Add{}, nil, nil, fmt.Errorf("read the list of network %s: %w", e.NetworkName, err)
	}
	for _, p := range l.Plugins {
		if string(p["type"]) != `"backstop"` {
			continue
		}
		p["name"], _ = json.Marshal(e.NetworkName)
		p["cniVersion"], _ = json.Marshal(l.CNIVersion)
		p["prevResult"] = e.Result
		b, err := json.Marshal(p)
		if err != nil {
			return reconcile.Add{}, nil, nil, fmt.Errorf("put the result of %s/%s into backstop's configuration: %w", e.NetworkName, e.ContainerID, err)
		}
		cfg, problems, err := ParseConfig(b)
		if err != nil {
			return reconcile.Add{}, nil, nil, err
		}
		a := reconcile.Add{
			Key: attachment.Key{Network: e.NetworkName, ContainerID: e.ContainerID, IfName: e.IfName}, Netns: e.NetNS,
			CNIVersion: cfg.CNIVersion, CNIArgs: joinArgs(e.CNIArgs), PrevResult: cfg.PrevResult, Settings: cfg.Settings(),
			Prove: true, Result: attachment.ParseResult(cfg.PrevResult),
		}
		return a, cfg, problems, a.Key.Valid()
	}
	return reconcile.Add{}, nil, nil, ErrNoEntry
}

// joinArgs gives CNI_ARGS.
func joinArgs(pairs [][2]string) string {
	var args []string
	for _, kv := range pairs {
		args = append(args, kv[0]+"="+kv[1])
	}
	return strings.Join(args, ";")
}
