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

// newer is a pod of the node's first interface that gets the address which web had, of the second.
var newer = pod{"b", "reuse"}

// wrongENI: a daemon that has forgotten pod a answers its DEL with success, and a's rule stays. Then b gets a's address.
func wrongENI(n *node) error {
	return story(with(web, forgotten), added(newer), leaves(newer), deleted(newer), gone(newer))(n)
}

// wrongENIAtOnce is the same before kubelet has removed a's netns.
func wrongENIAtOnce(n *node) error {
	return story(added(web), forgotten, deleted(web), added(newer), leaves(newer), gone(web), settled(1), leaves(newer), deleted(newer), gone(newer))(n)
}

// leaves shows by which interface the pod's packets leave.
func leaves(p pod) act {
	return func(n *node) error {
		way, err := leavesBy(p, "10.0.2.50")
		n.shown = append(n.shown, "the new pod's packets leave by "+way+", they belong to ens5")
		return err
	}
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

// same is another pod of the second interface, with web's address.
var same = pod{"b", "same"}

// reused: pod a dies without a DEL, the daemon forgets it and gives its address to b.
var reused = story(added(web), killed, gone(web), up(""), added(same))

// lateDEL: what happens to the daemon, then a's DEL comes. With the daemon away aws-cni goes by a's prevResult, and a's
// record stays owed while b has the address.
func lateDEL(happens act) act {
	return story(reused, happens, kept("aws-cni's DEL of the older pod took the live one's", "10.0.2.50", deleted(web)),
		kept(swept, "10.0.2.50", settled(1)), (*node).verify, deleted(same), gone(same))
}

// lateDELLast: b is gone when a's DEL comes.
var lateDELLast = story(reused, deleted(same), gone(same), killed, deleted(web))

const swept = "backstop's sweep took the live pod's"

// kept shows which lines of the node that name something go while something happens.
func kept(what, of string, happens act) act {
	return func(n *node) error {
		before, err := uses(of)
		if err != nil {
			return err
		}
		if err := happens(n); err != nil {
			return err
		}
		after, err := uses(of)
		for _, line := range before {
			if !slices.Contains(after, line) {
				n.shown = append(n.shown, what+" `"+line+"`")
			}
		}
		return err
	}
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

// uses are the lines of the node that name something: an address, a link.
func uses(name string) (lines []string, err error) {
	all, err := look()
	for _, line := range all {
		if strings.Contains(line, name) {
			lines = append(lines, plain(line))
		}
	}
	return lines, err
}
