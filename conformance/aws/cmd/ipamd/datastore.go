package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"

	"github.com/aws/amazon-vpc-cni-k8s/pkg/ipamd/datastore"
	"github.com/aws/amazon-vpc-cni-k8s/pkg/utils/logger"
	"github.com/aws/amazon-vpc-cni-k8s/rpc"
	"github.com/hashicorp/go-multierror"
)

// real is a daemon's book as the real daemon keeps it: with its file, and what it prunes when it starts.
type real struct{ store *datastore.DataStore }

// eni is an interface of the node, which the real daemon learns of from EC2.
type eni struct {
	ID            string
	Device, Table int
	Primary       bool
	CIDRs         []string
}

func openDatastore(enis, file string) (*real, error) {
	b, err := os.ReadFile(enis)
	if err != nil {
		return nil, err
	}
	var all []eni
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", enis, err)
	}
	log := logger.New(&logger.Configuration{LogLevel: "Info", LogLocation: "/var/log/ipamd.log"})
	r := &real{store: datastore.NewDataStore(log, datastore.NewJSONFile(file), false, 0)}
	for _, e := range all {
		if err := r.add(e); err != nil {
			return nil, fmt.Errorf("%s: %w", e.ID, err)
		}
	}
	return r, r.store.ReadBackingStore(false)
}

func (r *real) add(e eni) error {
	if err := r.store.AddENI(e.ID, e.Device, e.Primary, false, false, e.Table, "subnet"); err != nil {
		return err
	}
	for _, text := range e.CIDRs {
		_, cidr, err := net.ParseCIDR(text)
		if err != nil {
			return err
		}
		if err := r.store.AddIPv4CidrToStore(e.ID, *cidr, false); err != nil {
			return err
		}
	}
	return nil
}

func (r *real) assign(in *rpc.AddNetworkRequest) (*rpc.AddNetworkReply, error) {
	v4, v6, device, table, err := r.store.AssignPodIPAddress(
		datastore.IPAMKey{ContainerID: in.ContainerID, IfName: in.IfName, NetworkName: in.NetworkName},
		datastore.IPAMMetadata{K8SPodNamespace: in.K8S_POD_NAMESPACE, K8SPodName: in.K8S_POD_NAME, InterfacesCount: 1}, true, false)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ipamd: no address:", err)
		return &rpc.AddNetworkReply{}, nil
	}
	return &rpc.AddNetworkReply{Success: true, VPCv4CIDRs: []string{"10.0.0.0/16"}, IPAllocationMetadata: []*rpc.IPAllocationMetadata{
		{IPv4Addr: v4, IPv6Addr: v6, DeviceNumber: int32(device), RouteTableId: int32(table)}}}, nil
}

func (r *real) release(in *rpc.DelNetworkRequest) (*rpc.DelNetworkReply, error) {
	_, ip, device, _, table, err := r.store.UnassignPodIPAddress(
		datastore.IPAMKey{ContainerID: in.ContainerID, IfName: in.IfName, NetworkName: in.NetworkName})
	if err != nil {
		return &rpc.DelNetworkReply{}, multierror.Append(nil, err)
	}
	return &rpc.DelNetworkReply{Success: true, IPAllocationMetadata: []*rpc.IPAllocationMetadata{
		{IPv4Addr: ip, DeviceNumber: int32(device), RouteTableId: int32(table)}}}, nil
}
