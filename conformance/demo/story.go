package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/backstop-cni/backstop/conformance/internal/lab"
	"github.com/backstop-cni/backstop/internal/testnode"
)

// reservation is host-local's file for the pod's address.
const reservation = "/var/lib/cni/networks/demo/10.88.0.2"

// list is the network: a primary that needs its daemon, in front of the reference plugins ptp and host-local, and
// backstop in the last place.
const list = `{
  "cniVersion": "1.1.0", "name": "demo",
  "plugins": [
    {"type": "gatedprimary", "socket": "/run/gated/sock", "rules": true, "table": 100, "hostRoute": true,
     "delegate": {"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}]]}}},
    {"type": "backstop", "primary": {"probe": ["unix:///run/gated/sock"]}}
  ]
}
`

// story is the demo on its way: where it is told, and the daemon that lives and dies in it.
type story struct {
	out    io.Writer
	daemon lab.Daemon
}

// play tells the story from beginning to end, in the node that the process already is in.
func (s *story) play() error {
	if err := os.WriteFile("/etc/cni/net.d/demo.conflist", []byte(list), 0o600); err != nil {
		return fmt.Errorf("writing the network's list: %w", err)
	}
	s.say("A throw-away node with this network:\n\n%s\n"+
		"The primary works only while its daemon answers. It has ptp make link and address, and adds what the AWS VPC CNI\n"+
		"adds: two ip rules and a host route. All of it is the pod's, and has to go with the pod.\n", indent(list))

	before, err := testnode.View{}.Take()
	if err != nil {
		return err
	}
	if err := s.addWithDaemon(); err != nil {
		return err
	}
	between, err := testnode.View{}.Take()
	if err != nil {
		return err
	}
	if err := podIsThere(between.Minus(before)); err != nil {
		return err
	}
	if err := s.delWithoutDaemon(); err != nil {
		return err
	}
	after, err := testnode.View{}.Take()
	if err != nil {
		return err
	}
	s.say("%s", sideBySide([]string{"before", "pod up", "after DEL"}, []testnode.Snapshot{before, between, after}))
	if diff := testnode.Diff(before, after); diff != "" {
		return fmt.Errorf("the node is not as it was before the pod:\n%s", diff)
	}
	s.say("   Backstop has removed every link, address, route and rule of the pod: the node is as it was before.\n")
	return s.replay(after)
}

// podIsThere makes sure that there is something to remove.
func podIsThere(came testnode.Snapshot) error {
	for _, kind := range []string{"^link ", "^route4 ", "^rule4 512: ", "^rule4 1536: "} {
		if len(came.Matching(regexp.MustCompile(kind))) == 0 {
			return fmt.Errorf("the pod brought nothing of the kind %q, so its removal shows nothing:\n%s", kind, came)
		}
	}
	return nil
}

func (s *story) addWithDaemon() error {
	s.say("1. The daemon is up, a pod comes.")
	if err := s.daemon.Up(); err != nil {
		return err
	}
	if err := s.do("ip netns add pod"); err != nil {
		return err
	}
	if err := s.do("cnitool add demo /run/netns/pod"); err != nil {
		return err
	}
	s.say("   Backstop has written down what the pod put into the node:")
	return s.show("backstopctl list")
}

func (s *story) delWithoutDaemon() error {
	s.say("2. The daemon is killed. Then the pod goes.")
	if err := s.daemon.Down(); err != nil {
		return err
	}
	if err := s.do("cnitool del demo /run/netns/pod"); err == nil {
		return errors.New("the primary's DEL succeeded without its daemon, so this shows nothing")
	}
	s.say("   The primary refused. A runtime can only try again, and some do not. What the node had and has:\n")
	return nil
}

// replay is the end: the primary's own DEL, when its daemon is back.
func (s *story) replay(clean testnode.Snapshot) error {
	if _, err := os.Stat(reservation); err != nil {
		return fmt.Errorf("the address was released, although that is the primary's part: %w", err)
	}
	s.say("   One thing is left, and is the primary's: its IPAM still holds the address. So the record says \"owed\":")
	if err := s.show("backstopctl list"); err != nil {
		return err
	}
	s.say("3. The daemon is back. The DEL that it missed is replayed.")
	if err := s.daemon.Up(); err != nil {
		return err
	}
	if err := s.show("backstopctl replay --yes"); err != nil {
		return err
	}
	if _, err := os.Stat(reservation); err == nil {
		return errors.New("the address 10.88.0.2 is still reserved after the replay")
	}
	now, err := testnode.View{}.Take()
	if err != nil {
		return err
	}
	if diff := testnode.Diff(clean, now); diff != "" {
		return fmt.Errorf("the replay changed the node:\n%s", diff)
	}
	open, err := output("backstopctl list -o json")
	if err != nil {
		return fmt.Errorf("listing the open records: %w: %s", err, open)
	}
	if strings.TrimSpace(string(open)) != "[]" {
		return fmt.Errorf("after the replay no record should be open: %s", open)
	}
	s.say("The node is clean, the address 10.88.0.2 is free, and no record is open.")
	return s.daemon.Down()
}
