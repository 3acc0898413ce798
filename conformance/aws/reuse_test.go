package aws

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
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
	link, err := hostLink(p)
	if err != nil {
		return "", err
	}
	out, err := exec.Command("ip", "route", "get", "8.8.8.8", "from", address, "iif", link).CombinedOutput()
	m := regexp.MustCompile(`dev (\S+)`).FindSubmatch(out)
	if err != nil || m == nil {
		return "", fmt.Errorf("ip route get from %s iif %s: %v: %s", address, link, err, out)
	}
	return string(m[1]), nil
}

func hostLink(p pod) (string, error) {
	peers, err := hostLinks(p)
	if err != nil || len(peers) != 1 {
		return "", fmt.Errorf("the pod's veths have the peers %v (%v), want one", peers, err)
	}
	out, err := exec.Command("ip", "-o", "link").Output()
	m := regexp.MustCompile(fmt.Sprintf(`(?m)^%d: ([^@:]+)`, peers[0])).FindSubmatch(out)
	if err != nil || m == nil {
		return "", fmt.Errorf("no link has index %d (%v)", peers[0], err)
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
	n.del(web)
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
