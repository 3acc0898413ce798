package nodescript

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/backstop-cni/backstop/internal/testnode"
)

// podGone is how long the kernel may take to empty a network namespace; it does so in a thread of its own.
const podGone = 10 * time.Second

func pod(_ *testscript.TestScript, args []string) error {
	switch {
	case len(args) == 1:
		return run("ip", "netns", "add", args[0]).then("ip", "-n", args[0], "link", "set", "lo", "up").err
	case len(args) == 2 && args[0] == "-gone":
		return removePod(args[1])
	default:
		return fmt.Errorf("pod: one name is wanted")
	}
}

// removePod deletes the namespace and waits for what the kernel then does by itself: the peers of its links go.
func removePod(name string) error {
	peers, err := peersInNode(name)
	if err != nil {
		return err
	}
	if err := run("ip", "netns", "del", name).err; err != nil {
		return err
	}
	return testnode.Until(podGone, func() error {
		links, err := linkList()
		if err != nil {
			return err
		}
		for _, l := range links {
			if inPod, ok := peers[l.Index]; ok && l.Peer == inPod {
				return fmt.Errorf("the link %s of pod %s is there", l.Name, name)
			}
		}
		return nil
	})
}

type link struct {
	Index int    `json:"ifindex"`
	Name  string `json:"ifname"`
	Peer  int    `json:"link_index"`
	Info  struct {
		Kind string `json:"info_kind"`
	} `json:"linkinfo"`
}

// peersInNode are the far ends of a pod's veths: the ifindex there, and the one in the pod.
func peersInNode(pod string) (map[int]int, error) {
	links, err := linkList("-n", pod)
	if err != nil {
		return nil, err
	}
	peers := map[int]int{}
	for _, l := range links {
		if l.Info.Kind == "veth" && l.Peer != 0 {
			peers[l.Peer] = l.Index
		}
	}
	return peers, nil
}

func linkList(where ...string) ([]link, error) {
	ip := run("ip", append(where, "-j", "-d", "link")...)
	if ip.err != nil {
		return nil, ip.err
	}
	var links []link
	if err := json.Unmarshal(ip.out, &links); err != nil {
		return nil, fmt.Errorf("reading the links %s: %w", strconv.Quote(string(ip.out)), err)
	}
	return links, nil
}

// ran is a program that has ended.
type ran struct {
	out []byte
	err error
}

func run(program string, args ...string) ran {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return ran{out, err}
}

// then runs the next program if this one was successful.
func (r ran) then(program string, args ...string) ran {
	if r.err != nil {
		return r
	}
	return run(program, args...)
}
