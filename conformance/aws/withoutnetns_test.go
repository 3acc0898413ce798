package aws

import (
	"context"
	"crypto/sha512"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containernetworking/cni/libcni"
)

// withoutNetns is a DEL of a runtime that has lost the pod's netns: CNI_NETNS is empty, which cnitool cannot say.
func withoutNetns(p pod) act {
	return func(n *node) error {
		list, err := libcni.ConfListFromFile("/etc/cni/net.d/10-aws.conflist")
		if err != nil {
			return err
		}
		sum := sha512.Sum512([]byte(p.netns())) // as cnitool makes the id
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err = libcni.NewCNIConfig(filepath.SplitList(os.Getenv("CNI_PATH")), nil).DelNetworkList(ctx, list, &libcni.RuntimeConf{
			ContainerID: fmt.Sprintf("cnitool-%x", sum[:10]), IfName: "eth0",
			Args: [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", p.name},
				{"K8S_POD_INFRA_CONTAINER_ID", p.sandbox}, {"K8S_POD_UID", "u"}},
		})
		how := "0"
		if err != nil {
			how = "1: " + firstLine(err.Error())
		}
		return n.ended(how)
	}
}
