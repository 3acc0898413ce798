package model

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

// network is one list of the node: a primary of some kind, and backstop behind it.
type network struct {
	name string
	id   byte // in its addresses

	// What its primary makes.
	v4, v6    bool
	prefix    string // of its host links' names
	mac       net.HardwareAddr
	fixedName bool // the name follows from the pod's, not from the sandbox
	master    bool // a port of the bridge, with a static forwarding entry
	macvlan   bool // nothing on the host
	routes    bool // host routes
	rules     bool // 512 to, 1536 from
	iifRules  bool // 10 iif
	neigh     bool // a permanent neighbour on the host's end
	further   bool // some of its pods get a second veth
	// What its DEL is like: aws-cni removes by address, leaves the link, and succeeds while its daemon is away.
	aws       bool
	hostLocal bool // reservations are files, and its IPAM knows nothing else

	// How backstop's entry is configured.
	probe    bool
	teardown string
	ipamKey  bool
	grace    time.Duration

	// The daemon. A primary without one is up.
	up       bool
	refuses  bool                    // it answers, and fails each DEL
	reserved map[string][]netip.Addr // by containerID/ifName; of host-local ones the files say it
	listener net.Listener
}

var sharedMAC = net.HardwareAddr{0xee, 0xee, 0xee, 0xee, 0xee, 0xee}

// networks are made anew for each run.
func networks() []*network {
	return []*network{
		{name: "aws", id: 1, further: true, v4: true, prefix: "eni", fixedName: true, routes: true, rules: true, aws: true, probe: true},
		{name: "ptp", id: 2, further: true, v4: true, v6: true, prefix: "veth", routes: true, rules: true, hostLocal: true, probe: true, ipamKey: true},
		{name: "bridge", id: 3, v4: true, prefix: "vbr", master: true, hostLocal: true, ipamKey: true},
		{name: "calico", id: 4, v4: true, prefix: "cali", mac: sharedMAC, fixedName: true, routes: true, neigh: true, probe: true},
		{name: "macvlan", id: 5, v4: true, macvlan: true, hostLocal: true},
		{name: "aws6", id: 6, further: true, v6: true, prefix: "e6n", fixedName: true, routes: true, rules: true, aws: true, probe: true, teardown: "always"},
		{name: "branch", id: 7, further: true, v4: true, prefix: "vlan", fixedName: true, routes: true, iifRules: true, probe: true},
	}
}

const (
	dataDir  = "/var/lib/cni/networks"
	cacheDir = "/var/lib/cni"
	confDir  = "/etc/cni/net.d"
	logFile  = "/var/log/backstop.log"
	pool     = 10 // addresses of a network: few, so that they are given out again soon
)

func (n *network) socket() string { return "/run/model/" + n.name + ".sock" }

// entry is backstop's in the list.
func (n *network) entry() map[string]any {
	e := map[string]any{"type": "backstop", "grace": n.grace.String(), "logFile": logFile}
	if n.probe {
		e["primary"] = map[string]any{"probe": []string{"unix://" + n.socket()}}
	}
	if n.teardown != "" {
		e["teardown"] = n.teardown
	}
	if n.ipamKey {
		e["ipam"] = map[string]any{"type": "host-local", "dataDir": dataDir}
	}
	return e
}

// list is the conflist.
func (n *network) list() []byte {
	b, _ := json.Marshal(map[string]any{"cniVersion": "1.1.0", "name": n.name,
		"plugins": []any{map[string]any{"type": primaryType}, n.entry()}})
	return b
}

// start brings the daemon up, so that probes are answered; stop takes it away.
func (n *network) start() error {
	if n.up {
		return nil
	}
	n.up = true
	if !n.probe {
		return nil
	}
	l, err := net.Listen("unix", n.socket())
	if err != nil {
		return fmt.Errorf("daemon of %s: %w", n.name, err)
	}
	n.listener = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return nil
}

func (n *network) stop() {
	if n.up && n.probe {
		n.listener.Close()
		os.Remove(n.socket())
		n.up = false
	}
}

// addresses gives the pool of one family.
func (n *network) addresses(v6 bool) (out []netip.Addr) {
	for i := range pool {
		if v6 {
			out = append(out, netip.MustParseAddr(fmt.Sprintf("fd00:%d::%d", n.id, 10+i)))
		} else {
			out = append(out, netip.AddrFrom4([4]byte{10, n.id, 0, byte(10 + i)}))
		}
	}
	return out
}

// linkName is the host link's: as the AWS VPC CNI and Calico name it after the pod, or like nothing before.
func (n *network) linkName(pod, ifName string, serial int) string {
	if !n.fixedName {
		return fmt.Sprintf("%s%d", n.prefix, serial)
	}
	sum := sha1.Sum([]byte(pod + "." + ifName))
	return n.prefix + hex.EncodeToString(sum[:])[:9]
}
