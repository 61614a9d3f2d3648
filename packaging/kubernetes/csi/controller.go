// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	pageBytes    = 4096
	minBytes     = 16 << 20 // of a volume of files
	defaultBytes = 1 << 30
	maxBytes     = 1 << 50

	// The pool hears a moment later that a mount has ended, and a donor opens a new volume a moment
	// after its creation. A volume cannot be removed meanwhile.
	removePatience = 5 * time.Second
	removeInterval = 200 * time.Millisecond

	schemeParameter = "scheme"
	defaultScheme   = "copies=2"
)

// Names that weir takes for a volume.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

type controller struct {
	csi.UnimplementedControllerServer
	pool *pool
	busy *busy
}

// volumeID is the name of a volume in the pool. The same name gives the same volume.
func volumeID(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "csi-" + hex.EncodeToString(sum[:16])
}

// checkCapability says whether a volume can be used as asked: as files, by any number of nodes.
func checkCapability(capability *csi.VolumeCapability) error {
	mount := capability.GetMount()
	switch {
	case capability == nil:
		return status.Error(codes.InvalidArgument, "a volume capability is missing")
	case mount == nil:
		return status.Error(codes.InvalidArgument, "a volume has files: no block device")
	case mount.GetFsType() != "" && mount.GetFsType() != "weir":
		return status.Errorf(codes.InvalidArgument, "file system %s: expected weir, or none",
			mount.GetFsType())
	case len(mount.GetMountFlags()) > 0:
		return status.Errorf(codes.InvalidArgument, "mount option %s: there are none",
			mount.GetMountFlags()[0])
	}
	return nil
}

func checkCapabilities(capabilities []*csi.VolumeCapability) error {
	if len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "volume capabilities are missing")
	}
	for _, capability := range capabilities {
		if err := checkCapability(capability); err != nil {
			return err
		}
	}
	return nil
}

// sizeOf chooses the size of a volume: what is required, in whole pages.
func sizeOf(r *csi.CapacityRange) (int64, error) {
	bytes, limit := r.GetRequiredBytes(), r.GetLimitBytes()
	if bytes < 0 || limit < 0 || bytes > maxBytes {
		return 0, status.Errorf(codes.OutOfRange, "%d bytes: expected at most %d", bytes, int64(maxBytes))
	}
	if bytes == 0 {
		bytes = defaultBytes
		if limit > 0 {
			bytes = min(bytes, limit/pageBytes*pageBytes)
		}
	}
	bytes = max(minBytes, (bytes+pageBytes-1)/pageBytes*pageBytes)
	if limit > 0 && bytes > limit {
		return 0, status.Errorf(codes.OutOfRange,
			"a limit of %d bytes: the volume would have %d, in pages of %d and at least %d",
			limit, bytes, pageBytes, minBytes)
	}
	return bytes, nil
}

func schemeOf(parameters map[string]string) (string, error) {
	scheme := defaultScheme
	for name, value := range parameters {
		if name != schemeParameter {
			return "", status.Errorf(codes.InvalidArgument, "parameter %s: the only one is %s",
				name, schemeParameter)
		}
		scheme = value
	}
	return scheme, nil
}

func created(id string, bytes int64) *csi.CreateVolumeResponse {
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: id, CapacityBytes: bytes}}
}

func (c *controller) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (
	*csi.CreateVolumeResponse, error) {
	if request.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume's name is missing")
	}
	if request.GetVolumeContentSource() != nil {
		return nil, status.Error(codes.InvalidArgument, "a volume begins empty: there are no copies")
	}
	if err := checkCapabilities(request.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	scheme, err := schemeOf(request.GetParameters())
	if err != nil {
		return nil, err
	}
	bytes, err := sizeOf(request.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	id := volumeID(request.GetName())
	if err := c.busy.take(id); err != nil {
		return nil, err
	}
	defer c.busy.give(id)
	old, err := c.pool.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if old != nil {
		return c.again(old, request.GetCapacityRange(), scheme)
	}
	if err := c.pool.create(ctx, id, bytes, scheme); err != nil {
		return nil, err
	}
	return created(id, bytes), nil
}

// again answers a call that is repeated.
func (c *controller) again(old *volume, r *csi.CapacityRange, scheme string) (
	*csi.CreateVolumeResponse, error) {
	limit := r.GetLimitBytes()
	if !old.Files || old.Scheme != scheme || old.Bytes < r.GetRequiredBytes() ||
		(limit > 0 && old.Bytes > limit) {
		return nil, status.Errorf(codes.AlreadyExists,
			"volume %s is there, with %d bytes and %s", old.Name, old.Bytes, old.Scheme)
	}
	return created(old.Name, old.Bytes), nil
}

func (c *controller) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) (
	*csi.DeleteVolumeResponse, error) {
	id := request.GetVolumeId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume's id is missing")
	}
	if err := c.busy.take(id); err != nil {
		return nil, err
	}
	defer c.busy.give(id)
	end := time.Now().Add(removePatience)
	for {
		err := c.remove(ctx, id)
		if status.Code(err) != codes.FailedPrecondition || time.Now().After(end) {
			return &csi.DeleteVolumeResponse{}, err
		}
		time.Sleep(removeInterval)
	}
}

func (c *controller) remove(ctx context.Context, id string) error {
	old, err := c.pool.find(ctx, id)
	if old == nil {
		return err
	}
	return c.pool.remove(ctx, id)
}

func (c *controller) ValidateVolumeCapabilities(ctx context.Context,
	request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	capabilities := request.GetVolumeCapabilities()
	if request.GetVolumeId() == "" || len(capabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "the volume's id or capabilities are missing")
	}
	old, err := c.pool.find(ctx, request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, status.Errorf(codes.NotFound, "there is no volume %s", request.GetVolumeId())
	}
	if err := checkCapabilities(capabilities); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
			VolumeContext:      request.GetVolumeContext(),
			VolumeCapabilities: capabilities,
			Parameters:         request.GetParameters(),
		},
	}, nil
}

func (c *controller) ControllerGetCapabilities(context.Context,
	*csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{
		Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{
			Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		}},
	}}}, nil
}
