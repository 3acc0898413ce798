package aws

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// wrongENI: a daemon that has forgotten pod a answers its DEL with success, and a's rule stays. Then b, a pod of the
// node's first interface, gets a's address.
func wrongENI(n *node) error {
	b := pod{"b", "reuse"}
	if err := story(with(web, forgotten), added(b))(n); err != nil {
		return err
	}
	way, err := leavesBy(b, "10.0.2.50")
	if err != nil {
		return err
	}
	n.shown = append(n.shown, "the new pod's packets leave by "+way+", they belong to ens5")
	return story(deleted(b), gone(b))(n)
}

// leavesBy asks the kernel which way a packet from the pod takes.
func leavesBy(p pod, address string) (dev string, err error) {
	links, err := testnode.HostLinks(p.sandbox)
	if err != nil || len(links) != 1 {
		return "", fmt.Errorf("the pod has the veths %v (%v), want one", links, err)
	}
	out, err := exec.Command("ip", "route", "get", "8.8.8.8", "from", address, "iif", links[0]).CombinedOutput()
	m := regexp.MustCompile(`dev (\S+)`).FindSubmatch(out)
	if err != nil || m == nil {
		return "", fmt.Errorf("ip route get from %s iif %s: %v: %s", address, links[0], err, out)
	}
	return string(m[1]), nil
}

// lateDEL: pod a dies without a DEL, the daemon forgets it and gives its address to b. It is away when a's DEL comes, and
// aws-cni goes by a's prevResult.
func lateDEL(n *node) error {
	b := pod{"b", "same"}
	if err := story(added(web), killed, gone(web), up(""), added(b), killed)(n); err != nil {
		return err
	}
	before, err := uses("10.0.2.50")
	if err != nil {
		return err
	}
	n.del(web, web.args())
	after, err := uses("10.0.2.50")
	if err != nil {
		return err
	}
	for _, line := range before {
		if !slices.Contains(after, line) {
			n.shown = append(n.shown, "aws-cni's DEL of the older pod took the live one's `"+line+"`")
		}
	}
	if err := n.verify(); err != nil {
		return err
	}
	return story(deleted(b), gone(b))(n)
}

// verify shows what an operator is told of it. Nothing is restored: backstop was called before aws-cni.
func (n *node) verify() error {
	if n.mode == "" {
		return nil
	}
	var found []struct{ What, Resource string }
	out, err := exec.Command("backstopctl", "verify", "-o", "json").Output()
	if e := json.Unmarshal(out, &found); e != nil {
		return fmt.Errorf("backstopctl verify: %w (%v): %s", e, err, out)
	}
	for _, f := range found {
		n.shown = append(n.shown, fmt.Sprintf("`backstopctl verify`: %s `%s`", f.What, f.Resource))
	}
	return nil
}

// uses are the lines of the node that have an address.
func uses(address string) (lines []string, err error) {
	all, err := look()
	for _, line := range all {
		if strings.Contains(line, address) {
			lines = append(lines, noise.ReplaceAllString(line, ""))
		}
	}
	return lines, err
}
