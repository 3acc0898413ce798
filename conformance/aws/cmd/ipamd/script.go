package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/aws/amazon-vpc-cni-k8s/rpc"
	"github.com/hashicorp/go-multierror"
)

// scripted gives each pod what the script says, as often as it is asked.
type scripted struct {
	pods map[string]pod // by namespace/name

	mu   sync.Mutex
	held map[key][]*rpc.IPAllocationMetadata
}

type pod struct {
	Addresses []struct {
		V4, V6        string
		Device, Table int32
	}
	// of a branch ENI
	Vlan    int32
	MAC     string
	Gateway string
	Parent  int32 // ifindex
}

type key struct{ network, container, ifName string }

func openScript(path string) (*scripted, error) {
	s := &scripted{held: map[key][]*rpc.IPAllocationMetadata{}}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &s.pods); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (s *scripted) assign(in *rpc.AddNetworkRequest) (*rpc.AddNetworkReply, error) {
	p, there := s.pods[in.K8S_POD_NAMESPACE+"/"+in.K8S_POD_NAME]
	if !there {
		return &rpc.AddNetworkReply{}, nil
	}
	var has []*rpc.IPAllocationMetadata
	for _, a := range p.Addresses {
		has = append(has, &rpc.IPAllocationMetadata{IPv4Addr: a.V4, IPv6Addr: a.V6, DeviceNumber: a.Device, RouteTableId: a.Table})
	}
	if p.Vlan == 0 { // the real daemon does not note pods of branch ENIs
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held[key{in.NetworkName, in.ContainerID, in.IfName}] = has
	}
	return &rpc.AddNetworkReply{Success: true, IPAllocationMetadata: has, VPCv4CIDRs: []string{"10.0.0.0/16"},
		PodVlanId: p.Vlan, PodENIMAC: p.MAC, PodENISubnetGW: p.Gateway, ParentIfIndex: p.Parent}, nil
}

// errUnknown has the text by which the plugin knows that the daemon has forgotten the pod.
var errUnknown = multierror.Append(nil, errors.New("datastore: unknown pod"))

func (s *scripted) release(in *rpc.DelNetworkRequest) (*rpc.DelNetworkReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{in.NetworkName, in.ContainerID, in.IfName}
	had, there := s.held[k]
	if !there {
		return &rpc.DelNetworkReply{}, errUnknown
	}
	delete(s.held, k)
	return &rpc.DelNetworkReply{Success: true, IPAllocationMetadata: had}, nil
}
