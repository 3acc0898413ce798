package kernel_test

import "testing"

// TestCapturePrimaries runs on a node on which others live: a second pod with rules, routes and a veth of its own,
// the node's own rules, and an ENI with a table that many pods use.
func TestCapturePrimaries(t *testing.T) {
	node := []string{
		"tuntap add dev eth1 mode tap", "link set eth1 up", "addr add 10.7.0.1/24 dev eth1",
		"route add default via 10.7.0.254 dev eth1 table 2", "route add 10.7.0.254 dev eth1 scope link table 2",
		"rule add pref 1024 fwmark 0x80/0x80 lookup main", "rule add pref 1025 from 10.7.0.0/24 lookup 2",
		"link add other address 02:00:00:00:00:99 type veth peer name eth0 netns POD2", "link set other up",
		"route add 10.1.0.9 dev other", "rule add pref 512 to 10.1.0.9 lookup main", "rule add pref 1536 from 10.1.0.9 lookup 2",
		"rule add pref 10 iif other lookup 102", "-6 route add fd00::9 dev other", "-6 rule add pref 512 to fd00::9 lookup main",
		"neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev other nud permanent",
		"link add cni0 address 02:00:00:00:00:01 type bridge", "link set cni0 up", "addr add 10.1.0.1/24 dev cni0", "fdb add 02:00:00:00:00:77 dev cni0 self local",
	}
	inside := []string{"link set eth0 up", "addr add 10.1.0.5/32 dev eth0"}
	for name, c := range map[string]captureCase{
		"ptp": {
			host: []string{"link add veth1 type veth peer name eth0 netns POD", "link set veth1 up", "addr add 10.1.0.1/32 dev veth1", "route add 10.1.0.5 dev veth1"},
			pod:  append(inside, "route add 10.1.0.1 dev eth0 scope link", "route add default via 10.1.0.1 dev eth0"),
			result: `{"interfaces":[{"name":"veth1","mac":"02:00:00:00:00:31"},{"name":"eth0","mac":"02:00:00:00:00:32","sandbox":"/run/netns/x"}],
				"ips":[{"address":"10.1.0.5/24","gateway":"10.1.0.1","interface":1}]}`,
			ips: "10.1.0.5",
			want: `own link veth1 (veth)
				own route 10.1.0.5 dev veth1 table main`,
			in: `own link eth0 (veth)
				own address 10.1.0.5/32 dev eth0
				own route 10.1.0.1 dev eth0 table main
				own route default via 10.1.0.1 dev eth0 table main`,
		},
		"ptp, dual stack": {
			host: []string{"link add veth1 type veth peer name eth0 netns POD", "link set veth1 up", "route add 10.1.0.5 dev veth1", "-6 route add fd00::5 dev veth1"},
			pod:  append(inside, "addr add fd00::5/128 dev eth0 nodad", "-6 route add default dev eth0"),
			result: `{"interfaces":[{"name":"veth1"},{"name":"eth0","sandbox":"/run/netns/x"}],
				"ips":[{"address":"10.1.0.5/24","interface":1},{"address":"fd00::5/64","interface":1}]}`,
			ips: "10.1.0.5 fd00::5",
			want: `own link veth1 (veth)
				own route 10.1.0.5 dev veth1 table main
				own route fd00::5 dev veth1 table main metric 1024`,
			in: `own link eth0 (veth)
				own address 10.1.0.5/32 dev eth0
				own address fd00::5/128 dev eth0
				own route default dev eth0 table main metric 1024`,
		},
		"bridge: the port is the pod's, cni0 everybody's": {
			host: []string{"link add veth1 address 02:00:00:00:00:31 type veth peer name eth0 netns POD", "link set veth1 up", "link set veth1 master cni0",
				"fdb add 02:00:00:00:00:05 dev veth1 master static"},
			pod: []string{"link set eth0 up", "addr add 10.1.0.5/24 dev eth0", "route add default via 10.1.0.1 dev eth0"},
			result: `{"interfaces":[{"name":"cni0","mac":"02:00:00:00:00:01"},{"name":"veth1","mac":"02:00:00:00:00:31"},{"name":"eth0","sandbox":"/run/netns/x"}],
				"ips":[{"address":"10.1.0.5/24","interface":2}]}`,
			ips: "10.1.0.5",
			want: `own fdb 02:00:00:00:00:05 dev veth1
				own link veth1 (veth)
				shared link cni0 (bridge)`,
		},
		"AWS VPC CNI, IPv4": { // shape and numbers of facts/aws-vpc-cni.md
			host: []string{"link add eni5e884898da2 type veth peer name eth0 netns POD", "link set eni5e884898da2 up", "route add 10.1.0.5 dev eni5e884898da2 scope link",
				"rule add pref 512 to 10.1.0.5 lookup main", "rule add pref 1536 from 10.1.0.5 lookup 2"},
			pod: append(inside, "route add 169.254.1.1 dev eth0 scope link", "route add default via 169.254.1.1 dev eth0",
				"neigh add 169.254.1.1 lladdr 02:00:00:00:00:41 dev eth0 nud permanent"),
			result: `{"interfaces":[{"name":"eni5e884898da2"},{"name":"eth0","mac":"2","sandbox":"/run/netns/x"},
				{"name":"dummy5e884898da2","mac":"0","sandbox":"0"}],"ips":[{"address":"10.1.0.5/32","interface":1}]}`,
			ips: "10.1.0.5",
			want: `own link eni5e884898da2 (veth)
				own route 10.1.0.5 dev eni5e884898da2 table main
				own rule 1536: from 10.1.0.5 lookup 2
				own rule 512: from all to 10.1.0.5 lookup main`,
			in: `own link eth0 (veth)
				own address 10.1.0.5/32 dev eth0
				own neighbour 169.254.1.1 lladdr 02:00:00:00:00:41 dev eth0
				own route 169.254.1.1 dev eth0 table main
				own route default via 169.254.1.1 dev eth0 table main`,
		},
		"AWS VPC CNI, IPv6": {
			host: []string{"link add eni5e884898da2 type veth peer name eth0 netns POD", "link set eni5e884898da2 up", "-6 route add fd00::5 dev eni5e884898da2",
				"-6 rule add pref 512 to fd00::5 lookup main"},
			pod: []string{"link set eth0 up", "addr add fd00::5/128 dev eth0 nodad"},
			result: `{"interfaces":[{"name":"eni5e884898da2"},{"name":"eth0","mac":"254","sandbox":"/run/netns/x"},
				{"name":"dummy5e884898da2","mac":"0","sandbox":"0"}],"ips":[{"address":"fd00::5/128","interface":1}]}`,
			ips: "fd00::5",
			want: `own link eni5e884898da2 (veth)
				own route fd00::5 dev eni5e884898da2 table main metric 1024
				own rule 512: from all to fd00::5 lookup main`,
		},
		"AWS VPC CNI, branch ENI, strict": { // a tap stands for the vlan link, which this kernel may lack
			host: []string{"tuntap add dev vlan.eth.1 mode tap", "link set vlan.eth.1 up", "link add vlan5e884898 type veth peer name eth0 netns POD", "link set vlan5e884898 up",
				"route add 10.1.0.254 dev vlan.eth.1 scope link table 101", "route add default via 10.1.0.254 dev vlan.eth.1 table 101", "route add 10.1.0.5 dev vlan5e884898 scope link table 101",
				"rule add pref 10 iif vlan.eth.1 lookup 101", "rule add pref 10 iif vlan5e884898 lookup 101"},
			pod: inside,
			result: `{"interfaces":[{"name":"vlan5e884898"},{"name":"eth0","mac":"0","sandbox":"/run/netns/x"},{"name":"dummy5e884898","mac":"7"}],
				"ips":[{"address":"10.1.0.5/32","interface":1,"gateway":"169.254.1.1"}]}`,
			ips: "10.1.0.5",
			want: `own link vlan5e884898 (veth)
				own route 10.1.0.5 dev vlan5e884898 table 101
				own rule 10: from all iif vlan5e884898 lookup 101`,
			keep: true, // the vlan link and its table are not recorded yet
		},
		"AWS VPC CNI, branch ENI, its veth gone with the pod's namespace": { // aws-vpc-cni #3270, force-deleted
			closed: true, host: []string{"rule add pref 10 iif vlan5e884898 lookup 101"},
			result: `{"interfaces":[{"name":"vlan5e884898"},{"name":"eth0","mac":"0","sandbox":"/run/netns/x"},{"name":"dummy5e884898","mac":"7"}],
				"ips":[{"address":"10.1.0.5/32","interface":1,"gateway":"169.254.1.1"}]}`,
			ips:  "10.1.0.5",
			want: `own rule 10: from all iif vlan5e884898 lookup 101`,
		},
		"Calico: one MAC for every host veth": {
			node:   []string{"link set other address ee:ee:ee:ee:ee:ee"},
			host:   []string{"link add cali1 address ee:ee:ee:ee:ee:ee type veth peer name eth0 netns POD", "link set cali1 up", "route add 10.1.0.5 dev cali1 scope link proto 80"},
			pod:    append(inside, "route add 169.254.1.1 dev eth0 scope link", "route add default via 169.254.1.1 dev eth0"),
			result: `{"interfaces":[{"name":"cali1"}],"ips":[{"address":"10.1.0.5/32"}]}`,
			ips:    "10.1.0.5",
			want: `own link cali1 (veth)
				own route 10.1.0.5 dev cali1 table main`,
		},
		"Cilium: host lxc first, route in a table of its own": {
			host: []string{"link add lxc1 address 02:00:00:00:00:31 type veth peer name eth0 netns POD", "link set lxc1 up", "rule add pref 111 to 10.1.0.5 lookup 2004",
				"route add 10.1.0.5 dev lxc1 table 2004", "neigh add 10.1.0.5 lladdr 02:00:00:00:00:32 dev lxc1 nud permanent"},
			pod: inside,
			result: `{"interfaces":[{"name":"lxc1","mac":"02:00:00:00:00:31"},{"name":"eth0","sandbox":"/run/netns/x"}],
				"ips":[{"version":"4","address":"10.1.0.5/32","interface":1}]}`,
			ips: "10.1.0.5",
			want: `own link lxc1 (veth)
				own neighbour 10.1.0.5 lladdr 02:00:00:00:00:32 dev lxc1
				own route 10.1.0.5 dev lxc1 table 2004
				own rule 111: from all to 10.1.0.5 lookup 2004`,
		},
		"a route over a gateway device that all pods use": {
			host:   []string{"link add veth1 type veth peer name eth0 netns POD", "link set veth1 up", "route add 10.1.0.5 dev eth1"},
			pod:    inside,
			result: `{"interfaces":[{"name":"veth1"},{"name":"eth0","sandbox":"/run/netns/x"}],"ips":[{"address":"10.1.0.5/24","interface":1}]}`,
			ips:    "10.1.0.5",
			want: `own link veth1 (veth)
				own route 10.1.0.5 dev if table main`,
		},
		"macvlan: nothing of it is on the host": {
			host:   []string{"link add mv link eth1 type macvlan mode bridge", "link set mv name eth0 netns POD"},
			pod:    []string{"link set eth0 up", "addr add 10.7.0.5/24 dev eth0"},
			result: `{"interfaces":[{"name":"eth0","sandbox":"/run/netns/x"}],"ips":[{"address":"10.7.0.5/24","interface":0}]}`,
			ips:    "10.7.0.5",
			in: `own link eth0 (macvlan)
				own address 10.7.0.5/24 dev eth0`,
		},
		"bandwidth: the ifb of this container": {
			node: []string{"link add bwpffffffffffff type ifb"},
			host: []string{"link add veth1 type veth peer name eth0 netns POD", "link set veth1 up", "route add 10.1.0.5 dev veth1",
				"link add bwp1234567890ab address 02:00:00:00:00:51 type ifb"},
			pod: inside,
			result: `{"interfaces":[{"name":"veth1"},{"name":"eth0","sandbox":"/run/netns/x"},{"name":"bwp1234567890ab","mac":"02:00:00:00:00:51"}],
				"ips":[{"address":"10.1.0.5/24","interface":1}]}`,
			ips: "10.1.0.5",
			want: `own link bwp1234567890ab (ifb)
				own link veth1 (veth)
				own route 10.1.0.5 dev veth1 table main`,
		},
		"an empty prevResult: found through the pod's interface": { // terway #358
			host:   []string{"link add veth1 type veth peer name net1 netns POD", "link set veth1 up", "route add 10.1.0.5 dev veth1", "rule add pref 512 to 10.1.0.5 lookup main"},
			pod:    []string{"link set net1 up", "addr add 10.1.0.5/32 dev net1"},
			ifName: "net1", result: `{}`, ips: "10.1.0.5",
			want: `own link veth1 (veth)
				own route 10.1.0.5 dev veth1 table main
				own rule 512: from all to 10.1.0.5 lookup main`,
		},
		"several interfaces of one pod": {
			host: []string{"link add veth1 type veth peer name eth0 netns POD", "link add veth2 type veth peer name mNicIf1 netns POD", "link set veth1 up", "link set veth2 up",
				"route add 10.1.0.5 dev veth1", "route add 10.1.0.6 dev veth2", "rule add pref 1536 from 10.1.0.6 lookup 10102"},
			pod: append(inside, "link set mNicIf1 up", "addr add 10.1.0.6/32 dev mNicIf1"),
			result: `{"interfaces":[{"name":"veth1"},{"name":"eth0","sandbox":"/run/netns/x"},{"name":"veth2"},{"name":"mNicIf1","sandbox":"/run/netns/x"}],
				"ips":[{"address":"10.1.0.5/32","interface":1},{"address":"10.1.0.6/32","interface":3}]}`,
			ips: "10.1.0.5 10.1.0.6",
			want: `own link veth1 (veth)
				own link veth2 (veth)
				own route 10.1.0.5 dev veth1 table main
				own route 10.1.0.6 dev veth2 table main
				own rule 1536: from 10.1.0.6 lookup 10102`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.node = append(node[:len(node):len(node)], c.node...)
			c.run(t)
		})
	}
}
