package kernel_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/testnode"
)

// TestCaptureWithRulesAhead runs in a process that is in its node as a whole, since the dump is made on any thread. It
// must be the host's, whatever thread is in a pod just then, and the result the same as without it.
func TestCaptureWithRulesAhead(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		lines := "netns add pod\nlink add veth1 type veth peer name eth0 netns pod\nlink set veth1 up\nlink add veth10 type veth peer name v\n" +
			"rule add pref 512 to 10.0.0.5 lookup main\nrule add pref 10 iif veth1 lookup 101\nrule add pref 11 iif veth10 lookup 101\n" +
			"rule add pref 100 from 10.0.0.0/24 lookup 3\nrule add pref 513 to 10.0.0.6 lookup main\n"
		cmd := exec.Command("ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(lines)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if out, err := exec.Command("ip", "-n", "pod", "addr", "add", "10.0.0.5/32", "dev", "eth0").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		host, err := kernel.ReadNode()
		if err != nil {
			t.Fatal(err)
		}
		h, err := kernel.OpenHost()
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		const want = "own link veth1 (veth)\nown rule 10: from all iif veth1 lookup 101\nown rule 512: from all to 10.0.0.5 lookup main"
		for name, text := range map[string]string{"the result has the address": `{"ips":[{"address":"10.0.0.5/32"}]}`, "the address is the pod's alone": `{}`} {
			result := attachment.ParseResult(json.RawMessage(text))
			for i := range 50 {
				var ahead *kernel.Ahead // none the first time
				if i > 0 {
					ahead = kernel.RulesAhead()
				}
				pod, id, err := kernel.OpenPod("/run/netns/pod", host)
				if err != nil {
					t.Fatal(err)
				}
				got, err := kernel.Capture(h, kernel.Target{Result: result, IfName: "eth0", Pod: pod, Rules: ahead, PodNSID: func() int { return h.NSID("/run/netns/pod", id) }})
				pod.Close()
				if text := describe(got.Resources); err != nil || text != want {
					t.Fatalf("%s: %v\n%s\nwant\n%s", name, err, text, want)
				}
			}
		}
	})
}
