package aws

import "syscall"

// row is a situation: what happens to the daemon and to the pods.
type row struct {
	group        string
	name         string
	datastore    bool           // the daemon keeps the module's real datastore; else it forgets when it ends
	egress       map[string]any // egress-cni as it is for IPv6 clusters; else as the example has it, disabled
	plugins      []any          // before backstop, behind portmap
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
	tuning = map[string]any{"type": "tuning", "mac": "02:11:22:33:44:55", "dataDir": "/var/lib/cni/tuning"}
	// broken is a plugin whose ADD fails, and whose DEL does not.
	broken = map[string]any{"type": "tuning", "sysctl": map[string]string{"net.ipv4.conf.all.no_such_key": "1"}, "dataDir": "/var/lib/cni/tuning"}
	egress = map[string]any{"name": "egress-cni", "type": "egress-cni", "mtu": "9001", "enabled": "true", "randomizeSNAT": "prng", "nodeIP": "10.0.1.10",
		"ipam":          map[string]any{"type": "host-local", "ranges": []any{[]any{map[string]any{"subnet": "169.254.172.0/22"}}}, "routes": []any{map[string]any{"dst": "0.0.0.0/0"}}, "dataDir": "/run/cni/v6pd/egress-v4-ipam"},
		"pluginLogFile": "/var/log/aws-routed-eni/egress-v4-plugin.log", "pluginLogLevel": "DEBUG"}
)

// rows are the situations of the report, in its order. One without a group is of the group before it.
var rows = inGroups([]row{
	{group: "One pod", name: "the daemon is up and knows the pod", datastore: true, play: with(web)},
	{name: "the daemon is killed", datastore: true, play: with(web, killed)},
	{name: "the daemon is killed, and back while the pod's netns is still there", datastore: true,
		play: story(added(web), killed, deleted(web), up(""), gone(web))},
	{name: "the daemon is killed, the netns is gone before the DEL", datastore: true, play: story(added(web), killed, gone(web), deleted(web))},
	{name: "the daemon is killed, the DEL never comes", datastore: true, play: story(added(web), killed, gone(web))},
	{name: "the daemon is restarted over its file, the DEL never comes", datastore: true, play: story(added(web), killed, gone(web), up(""))},
	{name: "the daemon has forgotten the pod", play: with(web, forgotten)},
	{name: "the daemon is killed, the runtime's cache entry is lost", datastore: true, play: with(web, killed, cacheLost)},
	{name: "the daemon is killed, the runtime's cache entry is damaged", datastore: true, play: with(web, killed, cacheDamaged)},
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

	{group: "A published port (`portmap`)", name: "the daemon is killed", datastore: true, capabilities: ports, play: with(web, killed)},
	{name: "the daemon has forgotten the pod", capabilities: ports, play: with(web, forgotten)},
	{name: "the daemon is killed, the DEL never comes", datastore: true, capabilities: ports, play: story(added(web), killed, gone(web))},
	{name: "the daemon is killed, the runtime's cache entry is lost", datastore: true, capabilities: ports, play: with(web, killed, cacheLost)},

	{group: "IPv4 for an IPv6 pod (`egress-cni`) and a published port", name: "the daemon is up and knows the pod", egress: egress, capabilities: ports, play: with(v6)},
	{name: "the daemon is killed", egress: egress, capabilities: ports, play: with(v6, killed)},
	{name: "the daemon has forgotten the pod", egress: egress, capabilities: ports, play: with(v6, forgotten)},
	{name: "the daemon is killed, the netns is gone before the DEL", egress: egress, capabilities: ports, play: story(added(v6), killed, gone(v6), deleted(v6))},
	{name: "the daemon is killed, the DEL comes without a netns", egress: egress, capabilities: ports, play: story(added(v6), killed, withoutNetns(v6), gone(v6))},
	{name: "the daemon is killed, the runtime's cache entry is lost", egress: egress, capabilities: ports, play: with(v6, killed, cacheLost)},
	{name: "the DEL never comes", egress: egress, capabilities: ports, play: story(added(v6), gone(v6))},
	{name: "the daemon is up, a DEL fails for want of iptables, the next one comes after the grace", egress: egress, capabilities: ports,
		play: story(added(v6), deletedWithoutIptables(v6), settled(0), deleted(v6), gone(v6))},

	{group: "An address that goes to another pod", name: "forgotten, then a pod of another interface gets the address", play: wrongENI},
	{name: "the same, while the older pod's netns is still there", play: wrongENIAtOnce},
	{name: "no DEL, then another pod gets the address; the older pod's DEL comes, the daemon is up", play: lateDEL(up(""))},
	{name: "the same, the daemon is killed", hurts: true, play: lateDEL(killed)},
	{name: "the same, and the newer pod's DEL comes first", play: lateDELLast},

	{group: "An ADD that fails", name: "a later plugin's ADD fails, the daemon is up", plugins: []any{broken}, unrecorded: true,
		play: story(refused(web), deleted(web), gone(web))},
	{name: "a later plugin's ADD fails, the daemon is killed", plugins: []any{broken}, unrecorded: true,
		play: story(refused(web), killed, deleted(web), gone(web))},
	{name: "a later plugin's ADD fails, the daemon is killed, the DEL never comes", plugins: []any{broken}, unrecorded: true,
		play: story(refused(web), killed, gone(web))},
	{name: "the ADD of a branch ENI's pod (no vlan links in this kernel), the DEL comes, the netns is still there", unrecorded: true,
		play: story(refused(sg), deleted(sg))},
})

func inGroups(all []row) []row {
	for i := range all {
		if all[i].group == "" {
			all[i].group = all[i-1].group
		}
	}
	return all
}

// title names the row among all.
func (r row) title() string { return r.group + ": " + r.name }
