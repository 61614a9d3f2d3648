// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// detach unmounts what the kernel knows to be dead.
const detach = 2 // MNT_DETACH

type nodeServer struct {
	csi.UnimplementedNodeServer
	pool   *pool
	busy   *busy
	name   string
	mounts *mounts
}

func (n *nodeServer) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (
	*csi.NodePublishVolumeResponse, error) {
	id, target := request.GetVolumeId(), request.GetTargetPath()
	if id == "" || target == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume's id or the target path is missing")
	}
	if err := checkCapability(request.GetVolumeCapability()); err != nil {
		return nil, err
	}
	target = filepath.Clean(target)
	if err := n.busy.take(target); err != nil {
		return nil, err
	}
	defer n.busy.give(target)
	if v, err := n.pool.find(ctx, id); err != nil {
		return nil, err
	} else if v == nil || !v.Files {
		return nil, status.Errorf(codes.NotFound, "there is no volume %s of files", id)
	}
	if err := n.publish(ctx, id, target, request.GetReadonly()); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *nodeServer) publish(ctx context.Context, id, target string, readOnly bool) error {
	now, err := stateOf(target)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if now == mounted {
		return nil
	}
	if now == stale {
		if err := n.mounts.end(ctx, target, detach); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return n.mounts.start(ctx, n.pool, id, target, readOnly)
}

func (n *nodeServer) NodeUnpublishVolume(ctx context.Context,
	request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	if request.GetVolumeId() == "" || target == "" {
		return nil, status.Error(codes.InvalidArgument, "the volume's id or the target path is missing")
	}
	target = filepath.Clean(target)
	if err := n.busy.take(target); err != nil {
		return nil, err
	}
	defer n.busy.give(target)
	now, err := stateOf(target)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	switch now {
	case mounted:
		err = n.mounts.end(ctx, target, 0)
	case stale:
		err = n.mounts.end(ctx, target, detach)
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Rmdir(target); err != nil && err != syscall.ENOENT {
		return nil, status.Errorf(codes.Internal, "rmdir %s: %v", target, err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (n *nodeServer) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (
	*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (n *nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (
	*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}
