package aws

import (
	"errors"
	"os"
	"syscall"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// row is a situation: what happens to the daemon and to the pods.
type row struct {
	name         string
	datastore    bool  // the daemon keeps the module's real datastore; else it forgets when it ends
	plugins      []any // behind aws-cni
	capabilities string
	branch       string // the mode in which pods of branch ENIs are put up; needs vlan links
	unrecorded   bool   // no ADD succeeded, so backstop knows nothing: what stays, stays
	hurts        bool   // aws-cni itself removes what a live pod needs
	play         act
}

var (
	web   = pod{"a", "web"}
	v6    = pod{"a", "v6"}
	multi = pod{"a", "multi"}
	ports = `{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}`

	// tuning behind aws-cni rewrites the MAC in prevResult, which is where aws-cni keeps the table's number.
	tuning  = map[string]any{"type": "tuning", "mac": "02:11:22:33:44:55", "dataDir": "/var/lib/cni/tuning"}
	portmap = map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}, "snat": true}
	egress  = map[string]any{"name": "egress-cni", "type": "egress-cni", "mtu": "9001", "enabled": "true", "randomizeSNAT": "prng", "nodeIP": "10.0.1.10",
		"ipam":          map[string]any{"type": "host-local", "ranges": []any{[]any{map[string]any{"subnet": "169.254.172.0/22"}}}, "routes": []any{map[string]any{"dst": "0.0.0.0/0"}}, "dataDir": "/run/cni/v6pd/egress-v4-ipam"},
		"pluginLogFile": "/var/log/aws-routed-eni/egress-v4-plugin.log", "pluginLogLevel": "DEBUG"}
)

// act is one thing that happens.
type act func(*node) error

func added(p pod) act { return func(n *node) error { return n.add(p) } }

// gone ends a sandbox as its last process would: the netns goes, and with it the pod's ends of links.
func gone(p pod) act { return func(*node) error { return testnode.RemovePod(p.sandbox) } }

func deleted(p pod) act { return deletedAs(p, p.args()) }

// deletedAs is a DEL with another CNI_ARGS than kubelet's.
func deletedAs(p pod, cniArgs string) act {
	return func(n *node) error {
		n.del(p, cniArgs)
		return nil
	}
}

func up(del string) act { return func(n *node) error { return n.up(del) } }

func killed(n *node) error { return n.daemon.Kill() }

func signalled(s syscall.Signal) act { return func(n *node) error { return n.daemon.Signal(s) } }

// forgotten: the scripted daemon has no file.
func forgotten(n *node) error { return story(killed, up(""))(n) }

func cacheLost(*node) error { return os.RemoveAll("/var/lib/cni/results") }

// story is one thing after the other.
func story(acts ...act) act {
	return func(n *node) error {
		for _, a := range acts {
			if err := a(n); err != nil {
				return err
			}
		}
		return nil
	}
}

// with is the plain story: an ADD, what happens to the daemon, the DEL, and the pod's end.
func with(p pod, happens ...act) act {
	return story(added(p), story(happens...), deleted(p), gone(p))
}

// rows are the situations of the report, in its order.
var rows = []row{
	{name: "the daemon is up and knows the pod", datastore: true, play: with(web)},
	{name: "the daemon is killed", datastore: true, play: with(web, killed)},
	{name: "the daemon is killed, and back while the pod's netns is still there", datastore: true,
		play: story(added(web), killed, deleted(web), up(""), gone(web))},
	{name: "the daemon is killed, the netns is gone before the DEL", datastore: true, play: story(added(web), killed, gone(web), deleted(web))},
	{name: "the daemon is killed, the DEL never comes", datastore: true, play: story(added(web), killed, gone(web))},
	{name: "the daemon is restarted over its file, the DEL never comes", datastore: true, play: story(added(web), killed, gone(web), up(""))},
	{name: "the daemon has forgotten the pod", play: with(web, forgotten)},
	{name: "the daemon is killed, the runtime's cache entry is lost", datastore: true, play: with(web, killed, cacheLost)},
	{name: "the daemon is killed, `tuning` has rewritten the MAC", datastore: true, plugins: []any{tuning}, play: with(web, killed)},
	{name: "the daemon is killed, CNI_ARGS is empty", datastore: true, play: story(added(web), killed, deletedAs(web, ""), gone(web))},
	{name: "the daemon is stopped (SIGSTOP) and goes on later", datastore: true,
		play: story(with(web, signalled(syscall.SIGSTOP)), signalled(syscall.SIGCONT))},
	{name: "the daemon accepts and never answers", play: story(with(web, killed, up("hang")), killed)},
	{name: "the daemon refuses the DEL", play: story(with(web, killed, up("refuse")), killed)},
	{name: "IPv6: the daemon is killed", play: with(v6, killed)},
	{name: "IPv6: the daemon has forgotten the pod", play: with(v6, forgotten)},
	{name: "two interfaces: the daemon is killed", play: with(multi, killed)},
	{name: "two interfaces: the daemon has forgotten the pod", play: with(multi, forgotten)},
	{name: "`portmap` behind it: the daemon is killed", datastore: true, plugins: []any{portmap}, capabilities: ports, play: with(web, killed)},
	{name: "`portmap` behind it: the daemon has forgotten the pod", plugins: []any{portmap}, capabilities: ports, play: with(web, forgotten)},
	{name: "`egress-cni` behind it: the daemon is killed", plugins: []any{egress}, play: with(v6, killed)},
	{name: "`egress-cni` behind it: the daemon has forgotten the pod", plugins: []any{egress}, play: with(v6, forgotten)},
	{name: "forgotten, and the address goes to a pod of another interface", play: wrongENI},
	{name: "no DEL, the address goes to another pod; the daemon is killed, and the older pod's DEL comes", hurts: true, play: lateDEL},
	{name: "the ADD of a branch ENI's pod fails (no vlan links in this kernel)", unrecorded: true, play: failedADD},
}

// failedADD is seen while kubelet tries again: with the netns the veth would go.
func failedADD(n *node) error {
	p := pod{"a", "sg"}
	if n.add(p) == nil {
		return errors.New("the ADD succeeded: this kernel has vlan links")
	}
	n.del(p, p.args())
	return nil
}
