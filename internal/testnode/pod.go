package testnode

import (
	"fmt"
	"os/exec"
	"time"
)

// podGone is how long the kernel may take to empty a network namespace; it does so in a thread of its own.
const podGone = 10 * time.Second

// RemovePod deletes a pod, which is a named network namespace, and waits for what the kernel then does by itself: the
// peers of its links go.
func RemovePod(name string) error {
	peers, err := peersInNode(name)
	if err != nil {
		return err
	}
	if out, err := exec.Command("ip", "netns", "del", name).CombinedOutput(); err != nil {
		return fmt.Errorf("ip netns del %s: %w: %s", name, err, out)
	}
	return Until(podGone, func() error {
		left, err := withPeers(peers)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("the links %v of pod %s are there", left, name)
		}
		return nil
	})
}

// HostLinks are the names of the node's ends of a pod's veths.
func HostLinks(pod string) ([]string, error) {
	peers, err := peersInNode(pod)
	if err != nil {
		return nil, err
	}
	return withPeers(peers)
}

// peersInNode are the far ends of a pod's veths: the ifindex there, and the one in the pod.
func peersInNode(pod string) (map[int]int, error) {
	links, err := View{Netns: pod}.ipLinks("-d", "link")
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

// withPeers are the names of the node's links that have these indices and peers. The index alone says little: the
// kernel may have given it to another link.
func withPeers(peers map[int]int) ([]string, error) {
	links, err := View{}.ipLinks("-d", "link")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range links {
		if inPod, ok := peers[l.Index]; ok && l.Peer == inPod {
			names = append(names, l.Name)
		}
	}
	return names, nil
}
