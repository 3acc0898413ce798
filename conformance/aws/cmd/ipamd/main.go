// Ipamd stands in for the AWS VPC CNI's node daemon: it answers the real aws-cni plugin over gRPC. What it gives out
// is in a script, and forgotten when it ends, or in the module's own datastore, which keeps a file.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/aws/amazon-vpc-cni-k8s/rpc"
	"google.golang.org/grpc"
)

// book is where a daemon notes who has which address.
type book interface {
	assign(*rpc.AddNetworkRequest) (*rpc.AddNetworkReply, error)
	release(*rpc.DelNetworkRequest) (*rpc.DelNetworkReply, error)
}

func main() {
	socket := flag.String("socket", "/var/run/aws-node/ipamd.sock", "where it listens")
	script := flag.String("script", "", "the pods that there are, as JSON")
	enis := flag.String("enis", "", "the interfaces and their addresses, as JSON: with the real datastore")
	store := flag.String("store", "/var/run/aws-node/ipam.json", "the datastore's file")
	del := flag.String("del", "", "what a DEL meets: hang, or refuse")
	flag.Parse()
	if err := run(*socket, *script, *enis, *store, *del); err != nil {
		fmt.Fprintln(os.Stderr, "ipamd:", err)
		os.Exit(1)
	}
}

func run(socket, script, enis, store, del string) error {
	b, err := openBook(script, enis, store)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(socket); err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	g := grpc.NewServer()
	rpc.RegisterCNIBackendServer(g, &server{book: b, del: del})
	return g.Serve(l)
}

func openBook(script, enis, store string) (book, error) {
	if enis != "" {
		return openDatastore(enis, store)
	}
	return openScript(script)
}

type server struct {
	rpc.UnimplementedCNIBackendServer
	book book
	del  string
}

func (s *server) AddNetwork(_ context.Context, in *rpc.AddNetworkRequest) (*rpc.AddNetworkReply, error) {
	return s.book.assign(in)
}

func (s *server) DelNetwork(ctx context.Context, in *rpc.DelNetworkRequest) (*rpc.DelNetworkReply, error) {
	switch s.del {
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	case "refuse":
		return &rpc.DelNetworkReply{Success: false}, nil
	}
	return s.book.release(in)
}
