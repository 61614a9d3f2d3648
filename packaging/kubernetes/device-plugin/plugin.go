// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource        = "weir.dev/softnic"
	socketName      = "weir-softnic.sock"
	libraryName     = "libweir-softnic.so"
	containerFolder = "/usr/lib/weir-softnic"
	lookEvery       = time.Second
	registerTimeout = 10 * time.Second
)

type plugin struct {
	library, folder, kubelet string
	count                    int
}

// A device stands for the right of one container to load the library: softnic itself is in the
// container's processes, and needs nothing of the node.
func (p *plugin) devices() []*api.Device {
	var all []*api.Device
	for i := range p.count {
		all = append(all, &api.Device{ID: fmt.Sprintf("softnic-%d", i), Health: api.Healthy})
	}
	return all
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions,
	error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch tells the devices, which never change, until kubelet goes.
func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	if err := stream.Send(&api.ListAndWatchResponse{Devices: p.devices()}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) GetPreferredAllocation(context.Context, *api.PreferredAllocationRequest) (
	*api.PreferredAllocationResponse, error) {
	return &api.PreferredAllocationResponse{}, nil
}

func (p *plugin) PreStartContainer(context.Context, *api.PreStartContainerRequest) (
	*api.PreStartContainerResponse, error) {
	return &api.PreStartContainerResponse{}, nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse,
	error) {
	if _, err := os.Stat(filepath.Join(p.folder, libraryName)); err != nil {
		return nil, err
	}
	answer := &api.AllocateResponse{}
	for range request.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses,
			&api.ContainerAllocateResponse{
				Envs: map[string]string{
					"LD_PRELOAD":  filepath.Join(containerFolder, libraryName),
					"WEIR_DEVICE": "softnic",
				},
				Mounts: []*api.Mount{{
					ContainerPath: containerFolder, HostPath: p.folder, ReadOnly: true,
				}},
			})
	}
	return answer, nil
}

// install copies the library to the node. Programs that run keep the file that they have loaded.
func (p *plugin) install() error {
	bytes, err := os.ReadFile(p.library)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.folder, 0o755); err != nil {
		return err
	}
	path := filepath.Join(p.folder, libraryName)
	if err := os.WriteFile(path+".new", bytes, 0o755); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (p *plugin) register() error {
	ctx, cancel := context.WithTimeout(context.Background(), registerTimeout)
	defer cancel()
	kubelet, err := grpc.NewClient("unix:"+filepath.Join(p.kubelet, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	_, err = api.NewRegistrationClient(kubelet).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: socketName, ResourceName: resource})
	return err
}

// serve returns when kubelet, which begins by removing all sockets of plugins, has restarted.
func (p *plugin) serve() error {
	if err := p.install(); err != nil {
		return err
	}
	path := filepath.Join(p.kubelet, socketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	defer server.Stop()
	api.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	if err := p.register(); err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	for {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("kubelet has restarted: %w", err)
		}
		time.Sleep(lookEvery)
	}
}
