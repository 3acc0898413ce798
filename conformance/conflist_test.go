package conformance

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/backstop-cni/backstop/conformance/internal/lab"
)

// confDir is where cnitool finds the lists of a node.
const confDir = "/etc/cni/net.d"

// listOptions are the words of a story's `conflist NAME KEY=VALUE…`, with what holds when a word is not said.
type listOptions struct {
	primary  string   // ptp, bridge, macvlan, host-device: what makes the link
	gated    bool     // behind the gated primary and its daemon
	probe    bool     // backstop knows the daemon
	family   string   // v4, v6, dual
	subnet   string   // addresses are from 10.<subnet>.0.0/24 and fd<subnet>::/64
	ipam     string   // host-local, static
	only     string   // the one address that host-local has, instead of the range
	table    int      // where the rule `from the pod` leads
	host     string   // the host veth's name
	device   string   // of macvlan and host-device, a link of the node
	masq     string   // iptables, nftables: the primary masquerades that way
	portmap  string   // iptables, nftables: portmap's backend
	spoof    bool     // bridge checks the pod's MAC
	chain    []string // plugins between the primary and backstop
	wait     string   // how long a DEL waits for the daemon
	release  bool     // backstop has the ipam key
	backstop map[string]any
}

func parseListOptions(words []string) (*listOptions, error) {
	o := &listOptions{
		primary: "ptp", gated: true, probe: true, family: "v4", subnet: "91", ipam: "host-local", table: 100,
		device: "up0", backstop: map[string]any{},
	}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not of the form key=value", word)
		}
		if err := o.set(key, value); err != nil {
			return nil, fmt.Errorf("the word %s: %w", word, err)
		}
	}
	return o, nil
}

func (o *listOptions) set(key, value string) (err error) {
	switch key {
	case "primary":
		o.primary = value
	case "gated":
		o.gated, err = yes(value)
	case "probe":
		o.probe, err = yes(value)
	case "family":
		o.family = value
	case "subnet":
		o.subnet = value
	case "ipam":
		o.ipam = value
	case "only":
		o.only = value
	case "table":
		o.table, err = strconv.Atoi(value)
	case "host":
		o.host = value
	case "device":
		o.device = value
	case "masq":
		o.masq = value
	case "portmap":
		o.portmap = value
	case "spoof":
		o.spoof, err = yes(value)
	case "chain":
		if value != "" {
			o.chain = strings.Split(value, ",")
		}
	case "grace", "teardown":
		o.backstop[key] = value
	case "wait":
		o.wait = value
	case "release":
		o.release, err = yes(value)
	default:
		err = fmt.Errorf("conflist knows no such word")
	}
	return err
}

func yes(value string) (bool, error) {
	if value != "yes" && value != "no" {
		return false, fmt.Errorf("it is yes or no")
	}
	return value == "yes", nil
}

// list is the whole conflist.
func (o *listOptions) list(name string) map[string]any {
	plugins := []any{o.first()}
	for _, plugin := range o.chain {
		plugins = append(plugins, o.chained(plugin))
	}
	backstop := map[string]any{"type": "backstop"}
	if o.probe {
		primary := map[string]any{"probe": []string{"unix://" + lab.GatedSocket}}
		if o.wait != "" {
			primary["wait"] = o.wait
		}
		backstop["primary"] = primary
	}
	if o.release {
		backstop["ipam"] = map[string]any{"type": "host-local"}
	}
	for key, value := range o.backstop {
		backstop[key] = value
	}
	return map[string]any{"cniVersion": "1.1.0", "name": name, "plugins": append(plugins, backstop)}
}

// first is the list's first plugin: the reference plugin, or the gated primary in front of it.
func (o *listOptions) first() map[string]any {
	reference := map[string]any{"type": o.primary, "ipam": o.addresses()}
	switch o.primary {
	case "bridge":
		reference["bridge"] = "cni0"
		reference["isGateway"] = true
		if o.spoof {
			reference["macspoofchk"] = true
		}
	case "macvlan":
		reference["master"] = o.device
	case "host-device":
		reference["device"] = o.device
	}
	if o.masq != "" {
		reference["ipMasq"] = true
		reference["ipMasqBackend"] = o.masq
	}
	if !o.gated {
		return reference
	}
	return map[string]any{
		"type": "gatedprimary", "socket": lab.GatedSocket, "seen": lab.GatedDir + "/seen", "rules": true, "table": o.table,
		"hostRoute": true, "hostName": o.host, "delegate": reference,
	}
}

// addresses is the IPAM entry. The first pod gets 10.<subnet>.0.2 and fd<subnet>::2, as every pod does of static.
func (o *listOptions) addresses() map[string]any {
	if o.only != "" {
		return onlyAddress(o.only)
	}
	var ranges [][]map[string]string
	var static, routes []map[string]string
	add := func(net, bits, everywhere string) {
		ranges = append(ranges, []map[string]string{{"subnet": net + "0" + bits}})
		static = append(static, map[string]string{"address": net + "2" + bits, "gateway": net + "1"})
		routes = append(routes, map[string]string{"dst": everywhere})
	}
	if o.family != "v6" {
		add("10."+o.subnet+".0.", "/24", "0.0.0.0/0")
	}
	if o.family != "v4" {
		add("fd"+o.subnet+"::", "/64", "::/0")
	}
	if o.ipam == "static" {
		return map[string]any{"type": "static", "addresses": static, "routes": routes}
	}
	return map[string]any{"type": o.ipam, "ranges": ranges, "routes": routes}
}

// onlyAddress is host-local with a single address to give.
func onlyAddress(address string) map[string]any {
	subnet, everywhere := address+"/24", "0.0.0.0/0"
	if strings.Contains(address, ":") {
		subnet, everywhere = address+"/64", "::/0"
	}
	return map[string]any{
		"type":   "host-local",
		"ranges": [][]map[string]string{{{"subnet": netip.MustParsePrefix(subnet).Masked().String(), "rangeStart": address, "rangeEnd": address}}},
		"routes": []map[string]string{{"dst": everywhere}},
	}
}

// chained is the entry of a plugin between primary and backstop, with something to do; what a runtime asks of
// portmap and bandwidth comes in CAP_ARGS.
func (o *listOptions) chained(plugin string) map[string]any {
	entry := map[string]any{"type": plugin}
	switch plugin {
	case "portmap":
		entry["capabilities"] = map[string]bool{"portMappings": true}
		if o.portmap != "" {
			entry["backend"] = o.portmap
		}
	case "bandwidth":
		entry["capabilities"] = map[string]bool{"bandwidth": true}
	case "tuning":
		entry["sysctl"] = map[string]string{"net.core.somaxconn": "500"}
		entry["mtu"] = 1400
	}
	return entry
}

// conflist writes a list where cnitool finds it: `conflist NAME KEY=VALUE…`.
func conflist(_ *testscript.TestScript, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("conflist: a network's name is wanted")
	}
	o, err := parseListOptions(args[1:])
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(o.list(args[0]), "", "  ")
	if err != nil {
		return fmt.Errorf("writing the list of %s: %w", args[0], err)
	}
	if err := os.WriteFile(filepath.Join(confDir, args[0]+".conflist"), text, 0o600); err != nil {
		return fmt.Errorf("writing the list of %s: %w", args[0], err)
	}
	return nil
}
