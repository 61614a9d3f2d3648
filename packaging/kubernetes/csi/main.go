// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

// Command weir-csi is a CSI driver: volumes of files in a pool of weir, mounted by weir mount.
//
// One process serves the controller and the node's side. It runs the command weir, whose further
// options come from the environment and from /etc/weir/weir.toml, such as WEIR_MOUNT_KEY.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const probePatience = 5 * time.Second

// version is set by the linker, from meson.build.
var version = "unknown"

// listen opens the socket of an endpoint unix:PATH or unix://PATH. A socket that an earlier process
// left is removed.
func listen(endpoint string) (net.Listener, error) {
	path, ok := strings.CutPrefix(endpoint, "unix:")
	if !ok {
		return nil, fmt.Errorf("--endpoint %s: expected unix:PATH", endpoint)
	}
	path = strings.TrimPrefix(path, "//")
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}

// probe asks a driver whether it is ready. For kubelet, which runs the command in the container.
func probe(endpoint string) error {
	path, _ := strings.CutPrefix(endpoint, "unix:")
	connection, err := grpc.NewClient("unix:"+strings.TrimPrefix(path, "//"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	patience, cancel := context.WithTimeout(context.Background(), probePatience)
	defer cancel()
	_, err = csi.NewIdentityClient(connection).Probe(patience, &csi.ProbeRequest{})
	return err
}

// newServer makes a server of all three services.
func newServer(p *pool, node string) *grpc.Server {
	busy := newBusy()
	server := grpc.NewServer(grpc.UnaryInterceptor(logFailures))
	csi.RegisterIdentityServer(server, identity{})
	csi.RegisterControllerServer(server, &controller{pool: p, busy: busy})
	csi.RegisterNodeServer(server, &nodeServer{
		pool: p, busy: busy, name: node, mounts: newMounts()})
	return server
}

func run() error {
	endpoint := flag.String("endpoint", "unix:///csi/csi.sock", "socket to serve, `unix:PATH`")
	name := flag.String("node", "", "`NAME` of this node; required")
	place := flag.String("pool", "", "the `POOL`, as weir pool takes it; required")
	command := flag.String("weir", "weir", "`PATH` of the command weir")
	probes := flag.Bool("probe", false, "ask the driver at --endpoint whether it is ready, and end")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%s: unexpected: see --help", flag.Arg(0))
	}
	if *probes {
		return probe(*endpoint)
	}
	if *name == "" || *place == "" {
		return errors.New("--node and --pool are required: see --help")
	}
	listener, err := listen(*endpoint)
	if err != nil {
		return err
	}
	server := newServer(&pool{weir: *command, place: *place}, *name)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		server.GracefulStop()
	}()
	log.Printf("weir-csi %s: pool %s, node %s, %s", version, *place, *name, *endpoint)
	return server.Serve(listener)
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("weir-csi: ")
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
