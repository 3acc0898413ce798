package kernel_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
)

// TestCaptureOfOthers holds what must never be taken as a pod's own, however prevResult or the node look like it.
func TestCaptureOfOthers(t *testing.T) {
	// A second pod, whose veth is called as the first pod's could be.
	other := []string{
		"link add other address 02:00:00:00:00:99 type veth peer name eth0 netns POD2", "link set other up",
		"rule add pref 512 to 10.1.0.9 lookup main", "route add 10.1.0.9 dev other",
	}
	veth := []string{"link add veth1 address 02:00:00:00:00:31 type veth peer name eth0 netns POD", "link set veth1 up"}
	inside := []string{"link set eth0 up", "addr add 10.1.0.5/32 dev eth0"}
	for name, c := range map[string]captureCase{
		"prevResult names another pod's veth": {
			node: other, host: veth, pod: inside,
			result: `{"interfaces":[{"name":"other","mac":"02:00:00:00:00:99"},{"name":"eth0","sandbox":"/run/netns/x"}],"ips":[{"address":"10.1.0.5/32"}]}`,
			ips:    "10.1.0.5",
			want: `own link veth1 (veth)
				shared link other (veth)`,
		},
		"and another pod's address, to which its own route leads": { // what is there for an address counts only with a link that is no pod's
			node: other[:2], host: append(veth, "route add 10.1.0.5 dev other", "rule add pref 512 to 10.1.0.5 lookup main"), pod: inside,
			result: `{"interfaces":[{"name":"eth0","sandbox":"/run/netns/x"}],"ips":[{"address":"10.1.0.5/32"}]}`,
			ips:    "10.1.0.5",
			want: `own link veth1 (veth)
				own rule 512: from all to 10.1.0.5 lookup main`,
			keep: true, // whose the rule is only the journal can tell
		},
		"another pod's route to the address, in a table that a rule reaches": {
			node: append(other[:2:2], "route add 10.1.0.5 dev other table 1000"), host: append(veth, "rule add pref 1536 from 10.1.0.5 lookup 1000"), pod: inside,
			result: `{"interfaces":[{"name":"eth0","sandbox":"/run/netns/x"}],"ips":[{"address":"10.1.0.5/32"}]}`,
			ips:    "10.1.0.5",
			want: `own link veth1 (veth)
				own rule 1536: from 10.1.0.5 lookup 1000`,
		},
		"the same name on the host and in the pod": {
			node: []string{"tuntap add dev eth0 mode tap", "link set eth0 up", "route add 10.8.0.0/16 dev eth0"}, host: veth, pod: inside,
			result: `{"interfaces":[{"name":"eth0","mac":"02:00:00:00:00:31"},{"name":"eth0","sandbox":"/run/netns/x"}],"ips":[{"address":"10.1.0.5/32","interface":0}]}`,
			ips:    "10.1.0.5",
			want: `own link veth1 (veth)
				shared link eth0 (tun)`,
		},
		"a node whose own eth0 is a veth, as kind's are": {
			node: []string{"link add eth0 address 02:00:00:00:00:77 type veth peer name uplink netns POD2", "link set eth0 up", "route add default dev eth0"}, host: veth, pod: inside,
			result: `{"interfaces":[{"name":"eth0","mac":"02:00:00:00:00:77"},{"name":"veth1"}],"ips":[{"address":"10.1.0.5/32","interface":0}]}`,
			ips:    "10.1.0.5",
			want: `own link veth1 (veth)
				shared link eth0 (veth)`,
		},
		"shared devices, whatever prevResult says": {
			node: []string{"link add cni0 type bridge", "link add flannel.1 type vxlan id 1 dstport 8472", "link add mv0 link cni0 type macvlan", "tuntap add dev tunl0 mode tun"},
			pod:  []string{"link add eth0 type ifb", "link set eth0 up", "addr add 10.1.0.5/32 dev eth0"},
			result: `{"interfaces":[{"name":"cni0"},{"name":"flannel.1"},{"name":"mv0"},{"name":"tunl0"},{"name":"lo"},{"name":"gone0"}],
				"ips":[{"address":"10.1.0.5/32"}]}`,
			ips: "10.1.0.5",
			want: `shared link cni0 (bridge)
				shared link flannel.1 (vxlan)
				shared link lo (physical)
				shared link mv0 (macvlan)
				shared link tunl0 (tun)`,
		},
		"rules and routes of prefixes around the address": {
			node: []string{"tuntap add dev eth1 mode tap", "link set eth1 up", "route add 10.1.0.0/24 dev eth1", "rule add pref 100 from 10.1.0.0/24 lookup 100",
				"rule add pref 101 to 10.1.0.4/31 lookup 100", "route add default dev eth1 table 100"},
			host: append(veth, "route add 10.1.0.5 dev veth1"), pod: inside,
			result: `{"interfaces":[{"name":"veth1"}],"ips":[{"address":"10.1.0.5/24"}]}`,
			ips:    "10.1.0.5",
			want: `own link veth1 (veth)
				own route 10.1.0.5 dev veth1 table main`,
		},
		"a blackhole and a multipath route for the address": { // nothing says whose they are
			node: []string{"tuntap add dev eth1 mode tap", "link set eth1 up", "tuntap add dev eth2 mode tap", "link set eth2 up",
				"route add blackhole 10.1.0.5 table 1000", "route add 10.1.0.5 metric 9 nexthop dev eth1 nexthop dev eth2"},
			host: append(veth, "rule add pref 1536 from 10.1.0.5 lookup 1000"), pod: inside,
			result: `{"interfaces":[{"name":"veth1"}],"ips":[{"address":"10.1.0.5/24"}]}`,
			ips:    "10.1.0.5",
			want: `own link veth1 (veth)
				own rule 1536: from 10.1.0.5 lookup 1000`,
		},
		"addresses that cannot be one pod's": { // Multus delegates
			node:   []string{"rule add pref 100 from 0.0.0.0/32 lookup 100", "rule add pref 101 to 127.0.0.1 lookup 100", "rule add pref 102 to 169.254.1.1 lookup 100"},
			host:   veth,
			pod:    []string{"link set eth0 up"},
			result: `{"interfaces":[{"name":"veth1"}],"ips":[{"address":"0.0.0.0/32","gateway":"0.0.0.0"},{"address":"127.0.0.1/8"},{"address":"169.254.1.1/32"}]}`,
			want:   `own link veth1 (veth)`,
		},
		"the pod's namespace cannot be entered: a name proves nothing": {
			closed: true, host: append(veth, "route add 10.1.0.5 dev veth1", "rule add pref 512 to 10.1.0.5 lookup main"), pod: inside,
			result: `{"interfaces":[{"name":"veth1"},{"name":"eth0","sandbox":"/run/netns/x"}],"ips":[{"address":"10.1.0.5/32"}]}`,
			ips:    "10.1.0.5",
			want: `own rule 512: from all to 10.1.0.5 lookup main
				shared link veth1 (veth)`,
			keep: true,
		},
		"nor does another MAC": {
			closed: true, host: veth, pod: inside,
			result: `{"interfaces":[{"name":"veth1","mac":"02:00:00:00:00:32"}],"ips":[{"address":"10.1.0.5/32"}]}`,
			ips:    "10.1.0.5", want: "shared link veth1 (veth)", keep: true,
		},
		"nor one that others have": {
			closed: true, node: append(other[:2:2], "link set other address ee:ee:ee:ee:ee:ee"), host: append(veth, "link set veth1 address ee:ee:ee:ee:ee:ee"), pod: inside,
			result: `{"interfaces":[{"name":"veth1","mac":"ee:ee:ee:ee:ee:ee"}],"ips":[{"address":"10.1.0.5/32"}]}`,
			ips:    "10.1.0.5", want: "shared link veth1 (veth)", keep: true,
		},
		"but its own MAC does": {
			closed: true, node: other, host: append(veth, "route add 10.1.0.5 dev veth1", "rule add pref 512 to 10.1.0.5 lookup main"), pod: inside,
			result: `{"interfaces":[{"name":"veth1","mac":"02:00:00:00:00:31"},{"name":"eth0","sandbox":"/run/netns/x"}],"ips":[{"address":"10.1.0.5/32"}]}`,
			ips:    "10.1.0.5",
			want: `own link veth1 (veth)
				own route 10.1.0.5 dev veth1 table main
				own rule 512: from all to 10.1.0.5 lookup main`,
		},
		"and a route over a device that everybody uses could be another's": {
			closed: true, node: []string{"tuntap add dev eth1 mode tap", "link set eth1 up", "route add 10.1.0.5 dev eth1"}, host: veth, pod: inside,
			result: `{"interfaces":[{"name":"veth1"}],"ips":[{"address":"10.1.0.5/32"}]}`,
			ips:    "10.1.0.5", want: "shared link veth1 (veth)", keep: true,
		},
		"the pod's peer is in a third namespace, and its index is another pod's veth here": {
			host: []string{"link add other index 50 type veth peer name eth1 index 60 netns POD2", "link add eth0 index 60 netns POD type veth peer name eth0 index 50 netns POD2"},
			pod:  inside, result: `{}`, ips: "10.1.0.5", keep: true,
		},
		"nothing is known at all": {closed: true, node: other, result: `{}`},
		"nor understood":          {closed: true, node: other, result: `[1,"x"]`},
	} {
		t.Run(name, func(t *testing.T) { c.run(t) })
	}
}

// A path of a recycled pid leads into another pod: there is nothing of this one in it, though it may have the address
// and the host link's name by now.
func TestCaptureInAnotherPodsNamespace(t *testing.T) {
	const rule = "own rule 512: from all to 10.1.0.5 lookup main"
	const all = "own link veth1 (veth)\nown route 10.1.0.5 dev veth1 table main\n" + rule
	const pod, host = `{"name":"eth0","mac":"02:00:00:00:00:0a","sandbox":"/proc/4711/ns/net"}`, `{"name":"veth1","mac":"02:00:00:00:00:0b"}`
	for name, c := range map[string]struct {
		address, interfaces string
		very                bool
	}{
		"another pod":                   {address: "10.1.0.9/32", interfaces: `{"name":"eth0","sandbox":"/proc/4711/ns/net"}`},
		"the very pod":                  {address: "10.1.0.5/32", interfaces: `{"name":"eth0","sandbox":"/proc/4711/ns/net"}`, very: true},
		"the very pod, by MACs":         {address: "10.1.0.5/32", interfaces: host + "," + pod, very: true},
		"the MAC is a number":           {address: "10.1.0.5/32", interfaces: host + `,{"name":"eth0","mac":"254","sandbox":"/proc/4711/ns/net"}`, very: true},
		"another MAC in the pod":        {address: "10.1.0.5/32", interfaces: `{"name":"veth1"},` + strings.Replace(pod, "0a", "0c", 1)},
		"another MAC on the host's end": {address: "10.1.0.5/32", interfaces: strings.Replace(host, "0b", "0c", 1) + "," + pod},
	} {
		t.Run(name, func(t *testing.T) {
			n, pod := enterNode(t), newPod(t)
			n.ip("link add veth1 address 02:00:00:00:00:0b type veth peer name eth0 address 02:00:00:00:00:0a netns "+pod.path, "link set veth1 up", "route add 10.1.0.5 dev veth1", "rule add pref 512 to 10.1.0.5 lookup main")
			pod.ip("link set eth0 up", "addr add "+c.address+" dev eth0")
			in, id, err := openPod(t, pod.path, n.node())
			if err != nil {
				t.Fatal(err)
			}
			h := n.handle()
			result := attachment.ParseResult(json.RawMessage(`{"interfaces":[` + c.interfaces + `],"ips":[{"address":"10.1.0.5/32"}]}`))
			got, err := kernel.Capture(h, kernel.Target{Result: result, IfName: "eth0", Pod: in, Prove: true, PodNSID: func() int { return h.NSID(pod.path, id) }})
			if err != nil {
				t.Error(err)
			}
			own := slices.DeleteFunc(strings.Split(describe(got.Resources), "\n"), func(l string) bool { return !strings.HasPrefix(l, "own ") })
			want := rule
			if c.very {
				want = all
			}
			if text := strings.Join(own, "\n"); text != want {
				t.Errorf("%s\nwant\n%s", text, want)
			}
			if (len(got.Pod) > 0) != c.very {
				t.Errorf("of the pod's side: %s", describe(got.Pod))
			}
		})
	}
}
