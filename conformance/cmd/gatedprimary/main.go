// Gatedprimary is a primary CNI plugin that depends on a daemon, for tests and for the demo. It behaves as the plugins
// do for which backstop exists:
//
//   - it works only while its daemon's unix socket answers; without it ADD and DEL are errors and change nothing;
//   - it delegates the link and the address to a reference plugin (ptp, bridge, macvlan, …);
//   - asked to, it adds what the AWS VPC CNI adds: the rules `512 to IP lookup main` and `1536 from IP lookup T`, a
//     host route to the address, and a name of its own choice for the host veth;
//   - a DEL for an attachment that the daemon does not remember succeeds and changes nothing;
//   - at the start of each DEL it writes down what the node looked like, so that a test can prove that nobody had
//     removed anything before.
//
// Called with CNI_COMMAND in its environment it is the plugin; `gatedprimary daemon` is the daemon.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
)

func main() {
	if os.Getenv("CNI_COMMAND") == "" && len(os.Args) > 1 && os.Args[1] == "daemon" {
		if err := daemonMain(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "gatedprimary:", err)
			os.Exit(1)
		}
		return
	}
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: check, Status: status}, version.All, "gatedprimary")
}

func daemonMain(args []string) error {
	flags := flag.NewFlagSet("daemon", flag.ExitOnError)
	socket := flags.String("socket", "/run/gated/sock", "unix socket to listen on")
	state := flags.String("state", "/run/gated/state.json", "file that holds what the daemon must remember")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return serve(*socket, *state)
}
