package aws

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// patience is how long a runtime here waits for a call: kubelet's two minutes, made short. A stopped daemon costs
// the plugin 20 s.
const patience = 25 * time.Second

// node is the throw-away node that the process runs in, with the list that its runtime has.
type node struct {
	mode   string // backstop's teardown, or "" for a list without backstop
	row    row
	daemon *exec.Cmd
	before testnode.Snapshot
	told   []string // how the DELs ended
	shown  []string // what else the row has to say
}

// furnish makes what the daemon itself sets up on a node: two interfaces and their tables.
func furnish() error {
	lines := ""
	if os.Getenv(umlEnv) != "" { // another pod's branch ENI
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
	n.daemon = exec.Command("ipamd", args...)
	n.daemon.Stderr = os.Stderr
	if err := n.daemon.Start(); err != nil {
		return err
	}
	return testnode.Until(10*time.Second, func() error { return accepts(socket) })
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
	text := strings.Replace(string(b), `"Parent": 0`, fmt.Sprintf(`"Parent": %d`, trunk.Index), 1)
	return file, os.WriteFile(file, []byte(text), 0o600)
}

func data(name string) string {
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		panic(err)
	}
	return path
}

func (n *node) kill() error {
	if n.daemon == nil {
		return errors.New("the daemon is not up")
	}
	err := n.daemon.Process.Kill()
	n.daemon.Wait() // an error: it was killed
	n.daemon = nil
	return err
}

func (n *node) signal(s syscall.Signal) error { return n.daemon.Process.Signal(s) }

// list writes the runtime's list, as aws-node would install it, with backstop as its last entry or without it.
func (n *node) list() error {
	aws := map[string]any{"name": "aws-cni", "type": "aws-cni", "vethPrefix": "eni", "mtu": "9001", "podSGEnforcingMode": cmp.Or(n.row.branch, "strict"),
		"pluginLogFile": "/var/log/aws-routed-eni/plugin.log", "pluginLogLevel": "DEBUG"}
	plugins := append([]any{aws}, n.row.plugins...)
	if n.mode != "" {
		plugins = append(plugins, map[string]any{"type": "backstop", "teardown": n.mode, "grace": "1s",
			"primary": map[string]any{"probe": []string{"grpc+unix://" + socket}}})
	}
	b, err := json.Marshal(map[string]any{"cniVersion": "0.4.0", "name": "aws-cni", "disableCheck": true, "plugins": plugins})
	if err != nil {
		return err
	}
	return os.WriteFile("/etc/cni/net.d/10-aws.conflist", b, 0o600)
}

// pod is a sandbox in the node.
type pod struct {
	sandbox string // of its netns
	name    string // in Kubernetes
}

func (p pod) netns() string { return "/run/netns/" + p.sandbox }

// add makes the sandbox and has it attached.
func (n *node) add(p pod) error {
	if out, err := exec.Command("ip", "netns", "add", p.sandbox).CombinedOutput(); err != nil {
		return fmt.Errorf("ip netns add %s: %w: %s", p.sandbox, err, out)
	}
	code, out := n.cnitool("add", p, "")
	if code != 0 {
		return fmt.Errorf("ADD of %s: exit code %d: %s", p.name, code, out)
	}
	return nil
}

// del is the runtime's DEL; args replaces CNI_ARGS.
func (n *node) del(p pod, args ...string) {
	code, out := n.cnitool("del", p, args...)
	how := fmt.Sprint(code)
	switch {
	case code < 0:
		how = "no answer"
	case code > 0:
		how += ": " + firstLine(out)
	}
	n.told = append(n.told, how)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// cnitool calls the list as a runtime does; -1 stands for a call that was given up, with all its processes.
func (n *node) cnitool(verb string, p pod, args ...string) (int, string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "cnitool", verb, "aws-cni", p.netns())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	id := "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + p.name + ";K8S_POD_INFRA_CONTAINER_ID=" + p.sandbox + ";K8S_POD_UID=u"
	if len(args) == 1 && args[0] == "none" {
		id = ""
	}
	cmd.Env = append(os.Environ(), "NETCONFPATH=/etc/cni/net.d", "CNI_ARGS="+id, "CAP_ARGS="+n.row.capabilities)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err == nil {
		return 0, out.String()
	}
	if ctx.Err() != nil {
		return -1, out.String()
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// gone ends a sandbox as its last process would: the netns goes, and with it the pod's ends of links.
func (n *node) gone(p pod) error {
	links, err := hostLinks(p)
	if err != nil {
		return err
	}
	if out, err := exec.Command("ip", "netns", "del", p.sandbox).CombinedOutput(); err != nil {
		return fmt.Errorf("ip netns del %s: %w: %s", p.sandbox, err, out)
	}
	// The kernel takes a namespace apart on its own time.
	return testnode.Until(10*time.Second, func() error {
		for _, index := range links {
			if out, err := exec.Command("ip", "-o", "link").Output(); err != nil || strings.Contains("\n"+string(out), fmt.Sprintf("\n%d:", index)) {
				return fmt.Errorf("link %d is still there (%v)", index, err)
			}
		}
		return nil
	})
}

// hostLinks are the host's ends of the pod's veths.
func hostLinks(p pod) (peers []int, err error) {
	out, err := exec.Command("ip", "-n", p.sandbox, "-j", "link").Output()
	if err != nil {
		return nil, fmt.Errorf("links of %s: %w", p.sandbox, err)
	}
	var all []struct {
		LinkIndex int `json:"link_index"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, err
	}
	for _, l := range all {
		if l.LinkIndex > 0 {
			peers = append(peers, l.LinkIndex)
		}
	}
	return peers, nil
}
