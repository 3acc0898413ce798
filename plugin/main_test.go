package plugin

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/internal/testnode/nodescript"
)

func init() { runtime.LockOSThread() } // as the plugin's main does

// The test binary is the plugin, too: stories and tests start it as a process of its own.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", noPause)
	testscript.Main(m, map[string]func(){
		"backstop": func() {
			code := Run(os.Stdin, os.Stdout, os.Stderr)
			if file := os.Getenv(statusFile); file != "" {
				copyStatus(file)
			}
			os.Exit(code)
		},
	})
}

// noPause lets a process under the race detector end at once, instead of a second later.
const noPause = "atexit_sleep_ms=0"

// statusFile names, in the plugin's environment, a file that gets its /proc/self/status at the end: the most memory that
// it had is in it. What wait4(2) says of that includes the parent, from before exec.
const statusFile = "BACKSTOP_TEST_STATUS"

func copyStatus(file string) {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		err = os.WriteFile(file, status, 0o600)
	}
	if err != nil {
		panic(err)
	}
}

func TestStories(t *testing.T) {
	stories, err := os.ReadDir("testdata/stories")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stories {
		name := strings.TrimSuffix(s.Name(), ".txtar")
		t.Run(name, func(t *testing.T) {
			testnode.Run(t, func(t *testing.T) {
				cmds := nodescript.Commands(&nodescript.Socket{Path: "/run/primary.sock"})
				maps.Copy(cmds, nodescript.PluginCommands())
				testscript.Run(t, testscript.Params{
					Files: []string{"testdata/stories/" + s.Name()},
					Cmds:  cmds,
					Setup: func(env *testscript.Env) error { env.Setenv("GORACE", noPause); return nil },
				})
			})
		})
	}
}

// invoke runs the plugin as a runtime does.
func invoke(t *testing.T, verb, stdin string, env ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	c := exec.Command("backstop")
	c.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID=c1", "CNI_NETNS=/run/netns/p", "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin")
	c.Env = append(c.Env, env...)
	var out, log bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &log
	err := c.Run()
	return out.String(), log.String(), err == nil
}

// ip runs the ip program in the node.
func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

// dress makes a pod p as a primary leaves it: veth, address, route.
func dress(t *testing.T) {
	t.Helper()
	for _, args := range []string{
		"netns add p", "-n p link set lo up", "-n p link add eth0 type veth peer name hv netns 1", "link set hv up",
		"-n p link set eth0 up", "-n p addr add 10.9.9.9/32 dev eth0", "route add 10.9.9.9/32 dev hv",
	} {
		ip(t, args)
	}
}
