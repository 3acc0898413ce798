package crashtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/reconcile"
)

const (
	cacheDir   = "/var/lib/cni"
	dataDir    = "/var/lib/cni/networks"
	journalDir = "/var/lib/cni/backstop"
	stubDir    = "/run/bin"
	toldFile   = "/run/told" // by the primary that a replay calls
)

// pod is one attachment. Its network namespace outlives it, and gets the next one.
type pod struct {
	id, network, netns, link, ip, journal string
	to, from                              int // its rules' priorities
}

func (p *pod) key() attachment.Key {
	return attachment.Key{Network: p.network, ContainerID: p.id, IfName: "eth0"}
}

// upFile is there while the pod's primary is.
func (p *pod) upFile() string { return "/run/up-" + p.netns }

func (p *pod) up() error   { return os.WriteFile(p.upFile(), nil, 0o600) }
func (p *pod) down() error { return ignoreMissing(os.Remove(p.upFile())) }

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// entry is backstop's part of the list, without the result.
func (p *pod) entry() map[string]any {
	return map[string]any{"type": "backstop", "primary": map[string]any{"probe": []string{"file://" + p.upFile()}}, "grace": "0s",
		"journal": p.journal, "ipam": map[string]any{"type": "host-local", "dataDir": dataDir}}
}

func (p *pod) result() map[string]any {
	return map[string]any{"cniVersion": "1.1.0", "interfaces": []any{map[string]any{"name": p.link},
		map[string]any{"name": "eth0", "sandbox": "/run/netns/" + p.netns}}, "ips": []any{map[string]any{"address": p.ip + "/32", "interface": 1}}}
}

// config is what the runtime sends.
func (p *pod) config() string {
	c := p.entry()
	c["cniVersion"], c["name"], c["prevResult"] = "1.1.0", p.network, p.result()
	return encode(c)
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps and strings
	}
	return string(b)
}

// dress does what the primary does at an ADD.
func (p *pod) dress() error {
	err := ip("",
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", p.link, p.netns),
		fmt.Sprintf("link set %s up", p.link),
		fmt.Sprintf("route add %s dev %s", p.ip, p.link),
		fmt.Sprintf("rule add pref %d to %s lookup main", p.to, p.ip),
		fmt.Sprintf("rule add pref %d from %s lookup 100", p.from, p.ip),
		fmt.Sprintf("neigh add %s lladdr 02:00:00:00:00:01 dev %s nud permanent", p.ip, p.link),
	)
	if err == nil {
		err = ip(p.netns, "link set eth0 up", "addr add "+p.ip+"/32 dev eth0")
	}
	if err == nil {
		err = os.WriteFile(p.reservation(), []byte(p.id+"\r\neth0"), 0o600)
	}
	return err
}

// resources are what an ADD records of it: link, route, two rules and the neighbour.
const resources = 5

// reservation is host-local's file of the pod's address.
func (p *pod) reservation() string { return filepath.Join(dataDir, p.network, p.ip) }

func (p *pod) cacheFile() string { return reconcile.CacheFile(cacheDir, p.key()) }

func (p *pod) list() string {
	return encode(map[string]any{"cniVersion": "1.1.0", "name": p.network, "plugins": []any{map[string]any{"type": "stub"}, p.entry()}})
}

// cache writes libcni's entry, as a runtime does when the whole list's ADD is done.
func (p *pod) cache() error {
	return os.WriteFile(p.cacheFile(), []byte(encode(reconcile.CacheEntry{Kind: "cniCacheV1", ContainerID: p.id, IfName: "eth0", NetworkName: p.network,
		Config: []byte(p.list()), NetNS: "/run/netns/" + p.netns, Result: json.RawMessage(encode(p.result()))})), 0o600)
}

func (p *pod) uncache() error { return ignoreMissing(os.Remove(p.cacheFile())) }
