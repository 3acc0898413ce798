package aws

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// guest says that the node is on user-mode-linux, with vlan links and without netfilter and IPv6.
func guest() bool { return os.Getenv(umlEnv) != "" }

// node is the throw-away node that the process runs in, with the list that its runtime has.
type node struct {
	mode   string // backstop's teardown, or "" for a list without backstop
	row    row
	daemon testnode.Daemon
	before testnode.Snapshot
	told   []string // how the DELs ended
	after  []string // what there was more after the last of them
	shown  []string // what else the row has to say
}

// furnish makes what the daemon itself sets up on a node: two interfaces and their tables.
func furnish() error {
	lines := ""
	if guest() { // another pod's branch ENI
		lines = `
link add link ens6 name vlan.eth.9 type vlan id 9
link set vlan.eth.9 up
route add 10.0.9.1 dev vlan.eth.9 scope link table 109
route add default via 10.0.9.1 dev vlan.eth.9 table 109
rule add iif vlan.eth.9 lookup 109 pref 10
`
	}
	return script(`
link add ens5 type veth peer name vpc5
link add ens6 type veth peer name vpc6
link set ens5 mtu 9001 up
link set vpc5 mtu 9001 up
link set ens6 mtu 9001 up
link set vpc6 mtu 9001 up
addr add 10.0.1.10/24 dev ens5
addr add 10.0.2.10/24 dev ens6
route add default via 10.0.1.1 dev ens5
route del 10.0.2.0/24 dev ens6
route add 10.0.2.1 dev ens6 scope link table 2
route add default via 10.0.2.1 dev ens6 table 2
rule add fwmark 0x80/0x80 lookup main pref 1024
rule add from 10.0.2.10 lookup 2 pref 32765
rule add from 10.0.2.99 lookup 2 pref 1536
rule add to 10.0.2.99 lookup main pref 512
link add eni0neighbour type veth peer name nobody
` + lines)
}

func script(lines string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip -batch: %w: %s", err, out)
	}
	return nil
}

const (
	socket = "/var/run/aws-node/ipamd.sock"
	store  = "/var/run/aws-node/ipam.json"
)

// up starts the daemon; del is what its DELs meet.
func (n *node) up(del string) error {
	pods, err := podScript()
	if err != nil {
		return err
	}
	args := []string{"-socket", socket, "-del", del, "-script", pods}
	if n.row.datastore {
		args = []string{"-socket", socket, "-del", del, "-enis", data("enis.json"), "-store", store}
	}
	return n.daemon.Start("ipamd", args...)
}

// podScript is testdata/pods.json with the index that the trunk interface has in this node.
func podScript() (string, error) {
	const file = "/run/pods.json"
	b, err := os.ReadFile(data("pods.json"))
	if err != nil {
		return "", err
	}
	trunk, err := net.InterfaceByName("ens6")
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(string(b), `"Parent": 0`, fmt.Sprintf(`"Parent": %d`, trunk.Index))
	return file, os.WriteFile(file, []byte(text), 0o600)
}

func data(name string) string {
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		panic(err)
	}
	return path
}
