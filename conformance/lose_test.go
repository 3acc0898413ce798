package conformance

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/containernetworking/cni/libcni"
	"github.com/rogpeppe/go-internal/testscript"
)

// lose: so many pods are added to a network and gone again, and no DEL ever came. They are made as a runtime makes
// them, but in this process: hundreds of cnitool would take their time.
func lose(ts *testscript.TestScript, args []string) error {
	if len(args) != 2 {
		return errors.New("lose: a network and a number are wanted")
	}
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("lose: %w", err)
	}
	list, err := libcni.LoadConfList(confDir, args[0])
	if err != nil {
		return fmt.Errorf("lose: %w", err)
	}
	cni := libcni.NewCNIConfig(strings.Split(ts.Getenv("CNI_PATH"), ":"), nil)
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("lost%03d", i))
	}
	if err := netns("add", names); err != nil {
		return err
	}
	if err := addAll(cni, list, names); err != nil {
		return err
	}
	return netns("del", names)
}

// addAll adds pods, a few at a time.
func addAll(cni *libcni.CNIConfig, list *libcni.NetworkConfigList, names []string) error {
	errs := make([]error, len(names))
	places := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			rt := &libcni.RuntimeConf{ContainerID: name, NetNS: "/run/netns/" + name, IfName: "eth0"}
			_, errs[i] = cni.AddNetworkList(context.Background(), list, rt)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// netns adds or deletes named network namespaces.
func netns(verb string, names []string) error {
	var lines strings.Builder
	for _, name := range names {
		fmt.Fprintf(&lines, "netns %s %s\n", verb, name)
	}
	ip := exec.Command("ip", "-batch", "-")
	ip.Stdin = strings.NewReader(lines.String())
	if out, err := ip.CombinedOutput(); err != nil {
		return fmt.Errorf("ip netns %s of %d: %w: %s", verb, len(names), err, out)
	}
	return nil
}
