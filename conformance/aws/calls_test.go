package aws

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// patience is how long a runtime here waits for a call: kubelet's two minutes, made short. A stopped daemon costs
// the plugin 20 s.
const patience = 25 * time.Second

// pod is a sandbox in the node.
type pod struct {
	sandbox string // of its netns
	name    string // in Kubernetes
}

func (p pod) netns() string { return "/run/netns/" + p.sandbox }

// args is the CNI_ARGS that kubelet gives for it.
func (p pod) args() string {
	return "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + p.name + ";K8S_POD_INFRA_CONTAINER_ID=" + p.sandbox + ";K8S_POD_UID=u"
}

// add makes the sandbox and has it attached.
func (n *node) add(p pod) error {
	if err := script("netns add " + p.sandbox); err != nil {
		return err
	}
	code, out := n.cnitool("add", "aws-cni", p, p.args())
	if code != 0 {
		return fmt.Errorf("ADD of %s: exit code %d: %s", p.name, code, out)
	}
	return nil
}

// del is the runtime's DEL. What there is right after it is looked at: kubelet removes the netns only then.
func (n *node) del(p pod, cniArgs string, env ...string) error {
	code, out := n.cnitool("del", "aws-cni", p, cniArgs, env...)
	how := fmt.Sprint(code)
	switch {
	case code < 0:
		how = "no answer"
	case code > 0:
		how += ": " + firstLine(out)
	}
	return n.ended(how)
}

// ended notes how a DEL ended, and what there is after it.
func (n *node) ended(how string) error {
	n.told = append(n.told, how)
	var err error
	n.after, err = n.more()
	return err
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// cnitool calls the list as a runtime does; -1 stands for a call that was given up, with all its processes.
func (n *node) cnitool(verb, network string, p pod, cniArgs string, env ...string) (int, string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "cnitool", verb, network, p.netns())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env = append(os.Environ(), "NETCONFPATH=/etc/cni/net.d", "CNI_ARGS="+cniArgs, "CAP_ARGS="+n.row.capabilities)
	cmd.Env = append(cmd.Env, env...)
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
