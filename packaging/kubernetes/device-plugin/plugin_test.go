// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const patience = time.Minute

// A kubelet that notes who registers.
type kubelet struct {
	requests chan *api.RegisterRequest
}

func (k *kubelet) Register(_ context.Context, request *api.RegisterRequest) (*api.Empty, error) {
	k.requests <- request
	return &api.Empty{}, nil
}

type world struct {
	plugin  *plugin
	request *api.RegisterRequest
	ended   chan error
	client  api.DevicePluginClient
}

func start(t *testing.T) *world {
	library := os.Getenv("WEIR_TEST_SOFTNIC")
	if library == "" {
		t.Skip("WEIR_TEST_SOFTNIC does not name the library")
	}
	folder := t.TempDir()
	k := &kubelet{requests: make(chan *api.RegisterRequest, 1)}
	listener, err := net.Listen("unix", filepath.Join(folder, "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	t.Cleanup(server.Stop)
	api.RegisterRegistrationServer(server, k)
	go server.Serve(listener)
	w := &world{ended: make(chan error, 1), plugin: &plugin{library: library,
		folder: filepath.Join(t.TempDir(), "softnic"), kubelet: folder, count: 3}}
	go func() { w.ended <- w.plugin.serve() }()
	select {
	case w.request = <-k.requests:
	case err := <-w.ended:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatal("no registration")
	}
	link, err := grpc.NewClient("unix:"+filepath.Join(folder, w.request.Endpoint),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		link.Close()
		os.Remove(filepath.Join(folder, socketName))
	})
	w.client = api.NewDevicePluginClient(link)
	return w
}

func TestThePluginRegistersAndListsItsDevices(t *testing.T) {
	w := start(t)
	if w.request.ResourceName != resource || w.request.Version != api.Version {
		t.Error(w.request)
	}
	stream, err := w.client.ListAndWatch(t.Context(), &api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	said, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, device := range said.Devices {
		ids[device.ID] = device.Health == api.Healthy
	}
	if len(ids) != 3 || !ids["softnic-0"] || !ids["softnic-1"] || !ids["softnic-2"] {
		t.Error(said)
	}
}

// A program of verbs runs on softnic with what a container is given, under the node's path.
func TestAContainerHasADevice(t *testing.T) {
	w := start(t)
	answer, err := w.client.Allocate(t.Context(), &api.AllocateRequest{
		ContainerRequests: []*api.ContainerAllocateRequest{
			{DevicesIDs: []string{"softnic-0"}}, {DevicesIDs: []string{"softnic-2"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.ContainerResponses) != 2 {
		t.Fatal(answer)
	}
	given := answer.ContainerResponses[1]
	if len(given.Mounts) != 1 || !given.Mounts[0].ReadOnly {
		t.Fatal(given)
	}
	program, err := exec.LookPath("ibv_devinfo")
	if err != nil {
		t.Skip(err)
	}
	command := exec.Command(program)
	for name, value := range given.Envs {
		value = strings.Replace(value, given.Mounts[0].ContainerPath, given.Mounts[0].HostPath, 1)
		command.Env = append(command.Env, name+"="+value)
	}
	said, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "softnic0") {
		t.Errorf("%v: %s", err, said)
	}
}

func TestWithoutTheLibraryNoContainerStarts(t *testing.T) {
	w := start(t)
	if err := os.RemoveAll(w.plugin.folder); err != nil {
		t.Fatal(err)
	}
	answer, err := w.client.Allocate(t.Context(), &api.AllocateRequest{})
	if err == nil {
		t.Error(answer)
	}
}

func TestTheProcessEndsWhenKubeletRestarts(t *testing.T) {
	w := start(t)
	if err := os.Remove(filepath.Join(w.plugin.kubelet, socketName)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-w.ended:
		if !strings.Contains(err.Error(), "restarted") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("goes on")
	}
}

func TestWithoutKubeletThereIsAnError(t *testing.T) {
	p := &plugin{library: os.Args[0], folder: t.TempDir(), kubelet: t.TempDir(), count: 1}
	if err := p.serve(); err == nil {
		t.Error("no error")
	}
}
