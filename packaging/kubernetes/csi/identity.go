// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

package main

import (
	"context"
	"log"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// driverName is the provisioner of a StorageClass.
const driverName = "csi.weir"

type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (
	*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: version}, nil
}

func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (
	*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
			Type: csi.PluginCapability_Service_CONTROLLER_SERVICE,
		}},
	}}}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// logFailures writes a line for each call that fails.
func logFailures(ctx context.Context, request any, info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler) (any, error) {
	reply, err := handler(ctx, request)
	if err != nil {
		log.Printf("%s: %v", info.FullMethod, err)
	}
	return reply, err
}

// busy is a set of names, such as volumes, that a call works on. Kubernetes repeats a call that it
// believes lost, so two may have the same name.
type busy struct {
	lock  sync.Mutex
	names map[string]bool
}

func newBusy() *busy {
	return &busy{names: map[string]bool{}}
}

// take claims a name. The caller owes a give, unless it gets an error.
func (b *busy) take(name string) error {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.names[name] {
		return status.Errorf(codes.Aborted, "%s: another call for it is under way", name)
	}
	b.names[name] = true
	return nil
}

func (b *busy) give(name string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	delete(b.names, name)
}
