// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// startPool makes a pool of two donors on softnic, with its map in a file.
func startPool(t *testing.T) *pool {
	weir := os.Getenv("WEIR_TEST_WEIR")
	if weir == "" {
		t.Skip("WEIR_TEST_WEIR does not name the command weir")
	}
	if file, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skip(err)
	} else {
		file.Close()
	}
	t.Setenv("WEIR_DEVICE", "softnic")
	p := &pool{weir: weir, place: "file:" + t.TempDir() + "/p"}
	// The lease outlasts a delay of the machine.
	p.must(t, "pool", "create", "--groups", "8", "--lease", "20", p.place)
	for _, name := range []string{"a", "b"} {
		p.serve(t, name)
	}
	return p
}

func (p *pool) must(t *testing.T, words ...string) {
	t.Helper()
	if _, err := p.run(context.Background(), codes.Internal, words...); err != nil {
		t.Fatal(err)
	}
}

func (p *pool) serve(t *testing.T, name string) {
	t.Helper()
	donor := exec.Command(p.weir, "serve", "--listen", "127.0.0.1:0", "--memory", "256M",
		"--no-reserve", "--pool", p.place, "--name", name, "--domain", name)
	donor.Stderr = os.Stderr
	out, err := donor.StdoutPipe()
	if err == nil {
		err = donor.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		donor.Process.Signal(syscall.SIGTERM)
		donor.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "ready ") {
		t.Fatalf("donor %s: %s %v", name, line, err)
	}
}

// startDriver serves a pool, and returns the endpoint.
func startDriver(t *testing.T, p *pool) string {
	endpoint := "unix://" + filepath.Join(t.TempDir(), "csi.sock")
	listener, err := listen(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(p, "node1")
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return endpoint
}

func TestProbe(t *testing.T) {
	if err := probe(startDriver(t, &pool{})); err != nil {
		t.Fatal(err)
	}
	if probe("unix:///nowhere/csi.sock") == nil {
		t.Fatal("a driver that is not there is ready")
	}
}

func TestSanity(t *testing.T) {
	endpoint := startDriver(t, startPool(t))
	config := sanity.NewTestConfig()
	config.Address = endpoint
	config.TargetPath = filepath.Join(t.TempDir(), "target")
	config.StagingPath = filepath.Join(t.TempDir(), "staging")
	config.TestVolumeSize = 16 << 20
	config.TestVolumeParameters = map[string]string{"scheme": "copies=2"}
	// The driver makes and removes target paths itself.
	config.CheckPath = func(path string) (sanity.PathKind, error) {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return sanity.PathIsNotFound, nil
		case err != nil:
			return "", err
		case info.IsDir():
			return sanity.PathIsDir, nil
		}
		return sanity.PathIsOther, nil
	}
	sanity.Test(t, config)
}

// client is a driver's client, with a volume of the pool.
type client struct {
	csi.ControllerClient
	csi.NodeClient
	t *testing.T
}

func dial(t *testing.T, endpoint string) *client {
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{csi.NewControllerClient(conn), csi.NewNodeClient(conn), t}
}

var files = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{
		Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
	},
}

func (c *client) create(name string, bytes int64, scheme string) (string, error) {
	reply, err := c.CreateVolume(context.Background(), &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{files},
		CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
		Parameters:    map[string]string{"scheme": scheme},
	})
	return reply.GetVolume().GetVolumeId(), err
}

func (c *client) publish(id, target string, readOnly bool) error {
	_, err := c.NodePublishVolume(context.Background(), &csi.NodePublishVolumeRequest{
		VolumeId: id, TargetPath: target, VolumeCapability: files, Readonly: readOnly})
	return err
}

func (c *client) unpublish(id, target string) error {
	_, err := c.NodeUnpublishVolume(context.Background(),
		&csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target})
	return err
}

func (c *client) remove(id string) error {
	_, err := c.DeleteVolume(context.Background(), &csi.DeleteVolumeRequest{VolumeId: id})
	return err
}

func (c *client) succeeds(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) fails(err error, code codes.Code, text string) {
	c.t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), text) {
		c.t.Fatalf("expected %v with %q, got %v", code, text, err)
	}
}

// kill ends the process of a mount, which leaves the mount.
func (c *client) kill(target string) {
	c.t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	c.succeeds(err)
	for _, path := range processes {
		words, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(string(words), "\x00"+target+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		c.succeeds(err)
		c.succeeds(syscall.Kill(pid, syscall.SIGKILL))
	}
	for now := mounted; now != stale; time.Sleep(lookInterval) {
		now, err = stateOf(target)
		c.succeeds(err)
		if now == notMounted {
			return // weir's helper has unmounted it
		}
	}
}

// TestVolume follows a volume from its creation to its end.
func TestVolume(t *testing.T) {
	p := startPool(t)
	c := dial(t, startDriver(t, p))
	id, err := c.create("pvc-1", 20<<20, "copies=2")
	c.succeeds(err)
	_, err = c.create("pvc-1", 20<<20, "copies=2")
	c.succeeds(err)
	_, err = c.create("pvc-1", 20<<20, "copies=1")
	c.fails(err, codes.AlreadyExists, "copies=2")
	_, err = c.create("pvc-2", 1<<40, "copies=2")
	c.fails(err, codes.ResourceExhausted, "more than the donors")
	_, err = c.create("pvc-3", 20<<20, "copies=9")
	c.fails(err, codes.InvalidArgument, "expected a scheme")
	one, two := filepath.Join(t.TempDir(), "1"), filepath.Join(t.TempDir(), "2")
	c.succeeds(c.publish(id, one, false))
	t.Cleanup(func() { syscall.Unmount(one, detach) })
	c.succeeds(c.publish(id, one, false))
	c.succeeds(os.WriteFile(filepath.Join(one, "file"), []byte("bytes"), 0o600))
	c.succeeds(c.publish(id, two, true))
	t.Cleanup(func() { syscall.Unmount(two, detach) })
	if bytes, err := os.ReadFile(filepath.Join(two, "file")); string(bytes) != "bytes" {
		t.Fatal(string(bytes), err)
	}
	if err := os.WriteFile(filepath.Join(two, "other"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Fatal("a read-only mount takes a file: ", err)
	}
	c.succeeds(c.unpublish(id, two))
	c.fails(c.remove(id), codes.FailedPrecondition, "is mounted")
	open, err := os.Open(filepath.Join(one, "file"))
	c.succeeds(err)
	c.fails(c.unpublish(id, one), codes.FailedPrecondition, "in use")
	c.succeeds(open.Close())
	c.succeeds(c.unpublish(id, one))
	c.succeeds(c.unpublish(id, one))
	c.succeeds(c.remove(id))
	c.succeeds(c.remove(id))
	if volumes, err := p.volumes(context.Background()); err != nil || len(volumes) > 0 {
		t.Fatal(volumes, err)
	}
}

// TestDeadMount kills the process of a mount. The mount is made again, and can be ended.
func TestDeadMount(t *testing.T) {
	c := dial(t, startDriver(t, startPool(t)))
	id, err := c.create("pvc-1", 16<<20, "copies=2")
	c.succeeds(err)
	target := filepath.Join(t.TempDir(), "1")
	t.Cleanup(func() { syscall.Unmount(target, detach) })
	c.succeeds(c.publish(id, target, false))
	c.kill(target)
	c.succeeds(c.publish(id, target, false))
	c.succeeds(os.WriteFile(filepath.Join(target, "file"), nil, 0o600))
	c.kill(target)
	c.succeeds(c.unpublish(id, target))
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}
