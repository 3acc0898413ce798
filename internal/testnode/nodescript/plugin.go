package nodescript

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// PluginCommands are for stories that call the plugin directly, as a runtime would, with no primary in between:
//
//	dress [-mac MAC] POD LINK ADDRESS [TABLE]   what a primary leaves: pod, veth, address, host route and,
//	                                            with a TABLE, the rules 512 to ADDRESS and 1536 from ADDRESS
//	cni [FLAGS] VERB POD [LINK ADDRESS]         call the plugin; `! cni` wants it to fail
//
// The configuration has the network's name (-network, default n), a cniVersion (-version, default 1.1.0), whatever
// JSON members the story's variable KEYS holds and, when a link and an address are given, the prevResult of `dress`. -id, -ifname
// and -netns stand in for what follows from the pod's name; -conf FILE for the whole configuration.
func PluginCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"dress": Command(dress).Func("dress [-mac MAC] POD LINK ADDRESS [TABLE]"),
		"cni":   cni,
	}
}

func dress(_ *testscript.TestScript, args []string) error {
	f := flag.NewFlagSet("dress", flag.ContinueOnError)
	mac := f.String("mac", "", "of the host's end")
	if err := f.Parse(args); err != nil || f.NArg() < 3 || f.NArg() > 4 {
		return errors.Join(errors.New("a pod, a link and an address are wanted"), err)
	}
	pod, link, address := f.Arg(0), f.Arg(1), f.Arg(2)
	family, bits := "-4", "32"
	if strings.Contains(address, ":") {
		family, bits = "-6", "128"
	}
	steps := []string{
		"netns add " + pod,
		"-n " + pod + " link set lo up",
		"-n " + pod + " link add eth0 type veth peer name " + link + " netns 1",
		"link set " + link + " up",
		"-n " + pod + " link set eth0 up",
		"-n " + pod + " " + family + " addr add " + address + "/" + bits + " dev eth0 " + map[string]string{"-6": "nodad"}[family],
		family + " route replace " + address + "/" + bits + " dev " + link,
	}
	if *mac != "" {
		steps = append(steps, "link set "+link+" address "+*mac)
	}
	if table := f.Arg(3); table != "" {
		steps = append(steps, family+" rule add pref 512 to "+address+" lookup main", family+" rule add pref 1536 from "+address+" lookup "+table)
	}
	for _, s := range steps {
		// A rule that is there already is what a primary finds, too.
		if err := run("ip", strings.Fields(s)...); err != nil && !strings.Contains(err.Error(), "rule add") {
			return err
		}
	}
	return nil
}

func cni(ts *testscript.TestScript, neg bool, args []string) {
	f := flag.NewFlagSet("cni", flag.ContinueOnError)
	network := f.String("network", "n", "name of the network")
	version := f.String("version", "1.1.0", "cniVersion")
	id := f.String("id", "", "container id")
	ifname := f.String("ifname", "eth0", "CNI_IFNAME")
	netns := f.String("netns", "\x00", "CNI_NETNS")
	conf := f.String("conf", "", "file with the configuration")
	if err := f.Parse(args); err != nil || (f.NArg() != 2 && f.NArg() != 4) {
		ts.Fatalf("usage: cni [FLAGS] VERB POD [LINK ADDRESS] (%v)", err)
	}
	verb, pod := f.Arg(0), f.Arg(1)
	if *id == "" {
		*id = pod
	}
	if *netns == "\x00" {
		*netns = "/run/netns/" + pod
	}
	file := ts.MkAbs("cni.stdin")
	if *conf != "" {
		file = ts.MkAbs(*conf)
	} else if err := os.WriteFile(file, []byte(configuration(ts, *network, *version, pod, f.Arg(2), f.Arg(3))), 0o600); err != nil {
		ts.Fatalf("writing the configuration: %v", err)
	}
	for k, v := range map[string]string{"CNI_COMMAND": verb, "CNI_CONTAINERID": *id, "CNI_NETNS": *netns, "CNI_IFNAME": *ifname} {
		ts.Setenv(k, v)
	}
	if ts.Getenv("CNI_PATH") == "" {
		ts.Setenv("CNI_PATH", "/opt/cni/bin")
	}
	if err := ts.Exec("sh", "-c", "exec backstop <"+file); (err != nil) != neg {
		ts.Fatalf("%s for %s: %v, stdout %s", verb, pod, err, ts.ReadFile("stdout"))
	}
}

func configuration(ts *testscript.TestScript, network, version, pod, link, address string) string {
	members := []string{fmt.Sprintf(`"cniVersion":%q,"name":%q,"type":"backstop"`, version, network)}
	if keys := ts.Getenv("KEYS"); keys != "" {
		members = append(members, keys)
	}
	if link != "" {
		bits := 32
		if strings.Contains(address, ":") {
			bits = 128
		}
		members = append(members, fmt.Sprintf(`"prevResult":{"cniVersion":%q,"interfaces":[{"name":%q},{"name":"eth0","sandbox":"/run/netns/%s"}],"ips":[{"address":"%s/%d","interface":1}]}`,
			version, link, pod, address, bits))
	}
	return "{" + strings.Join(members, ",") + "}"
}
