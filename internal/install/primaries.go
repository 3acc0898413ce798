package install

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/internal/conflist"
	"sigs.k8s.io/yaml"
)

//go:embed primaries.json
var primariesJSON []byte

// known is what backstop's entry says for a primary, see docs/install.md.
type known struct {
	Types []string `json:"types"`
	Name  string   `json:"name"`
	Probe []string `json:"probe"`
	Wait  string   `json:"wait"`
	// HostLocal is where its own host-local keeps reservations on the node.
	HostLocal string `json:"hostLocal"`
	// Kubeconfig is the key, of the primary's entry, with the file that says where its API server is.
	Kubeconfig string `json:"kubeconfig"`
}

var primaries = func() (out []known) {
	if err := json.Unmarshal(primariesJSON, &out); err != nil {
		panic(err) // a test loads it
	}
	return out
}()

// entry is backstop's own, as it is written.
type entry struct {
	Type    string `json:"type"`
	Primary *struct {
		Probe []string `json:"probe"`
		Wait  string   `json:"wait,omitempty"`
	} `json:"primary,omitempty"`
	IPAM            *ipam  `json:"ipam,omitempty"`
	RuntimeCacheDir string `json:"runtimeCacheDir,omitempty"`
}

type ipam struct {
	Type    string `json:"type"`
	DataDir string `json:"dataDir,omitempty"`
}

// hostLocalDir is host-local's own default.
const hostLocalDir = "/var/lib/cni/networks"

// entryFor gives the entry behind these plugins, who the primary is, and what a person should add.
func entryFor(plugins []json.RawMessage) (e entry, name string, advice []string) {
	e = entry{Type: pluginType}
	primary := plugins[0]
	typ := conflist.Type(primary)
	i := slices.IndexFunc(primaries, func(k known) bool { return slices.Contains(k.Types, typ) })
	if i < 0 {
		return e, typ, []string{fmt.Sprintf("%q is no primary that backstop knows: if it has a daemon, set primary.probe to its socket in the new entry", typ)}
	}
	k := primaries[i]
	probe := k.Probe
	if k.Kubeconfig != "" {
		p, err := serverOf(primary, k.Kubeconfig)
		if err != nil {
			advice = append(advice, fmt.Sprintf("set primary.probe to the API server that %s's plugin uses, tcp://HOST:PORT: %v", k.Name, err))
		} else {
			probe = []string{p}
		}
	}
	if len(probe) > 0 {
		e.Primary = &struct {
			Probe []string `json:"probe"`
			Wait  string   `json:"wait,omitempty"`
		}{probe, k.Wait}
	}
	e.IPAM = ipamOf(primary, k)
	return e, k.Name, advice
}

// ipamOf is for those whose addresses host-local keeps on this node.
func ipamOf(primary json.RawMessage, k known) *ipam {
	var p struct {
		IPAM ipam `json:"ipam"`
	}
	_ = json.Unmarshal(primary, &p)
	if p.IPAM.Type != "host-local" && (p.IPAM.Type != "" || k.HostLocal == "") {
		return nil
	}
	if p.IPAM.DataDir == "" {
		p.IPAM.DataDir = k.HostLocal
	}
	if p.IPAM.DataDir == hostLocalDir {
		p.IPAM.DataDir = ""
	}
	return &ipam{"host-local", p.IPAM.DataDir}
}

// serverOf reads the API server's address out of the kubeconfig that a key of the entry names.
func serverOf(primary json.RawMessage, key string) (string, error) {
	var value any
	_ = json.Unmarshal(primary, &value)
	for name := range strings.SplitSeq(key, ".") {
		m, _ := value.(map[string]any)
		value = m[name]
	}
	path, _ := value.(string)
	if path == "" {
		return "", fmt.Errorf("its entry has no %s", key)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
			} `json:"cluster"`
		} `json:"clusters"`
	}
	if err := yaml.Unmarshal(b, &config); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if len(config.Clusters) == 0 {
		return "", fmt.Errorf("%s names no cluster", path)
	}
	u, err := url.Parse(config.Clusters[0].Cluster.Server)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"https", "http"}, u.Scheme) {
		return "", fmt.Errorf("%s: the server %q is no URL", path, config.Clusters[0].Cluster.Server)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return "tcp://" + net.JoinHostPort(u.Hostname(), port), nil
}
