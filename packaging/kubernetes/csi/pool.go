// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// pool is a pool of weir. Each method runs the command weir once.
type pool struct {
	weir, place string
}

// volume is a volume, as weir pool volume list --json shows it.
type volume struct {
	Name   string `json:"volume"`
	Bytes  int64  `json:"bytes"`
	Scheme string `json:"scheme"`
	Files  bool   `json:"files"`
}

// Exit statuses of the command weir.
const (
	exitFailed = 1
	exitUsage  = 2
)

// run returns the standard output of a command. If it fails, the error has its message, and the code
// failed. A context that ends interrupts the command, which then undoes what it has begun.
func (p *pool) run(ctx context.Context, failed codes.Code, words ...string) ([]byte, error) {
	var said bytes.Buffer
	command := exec.CommandContext(ctx, p.weir, words...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.Stderr = &said
	out, err := command.Output()
	var exit *exec.ExitError
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if !errors.As(err, &exit) {
		return nil, status.Errorf(codes.Internal, "%s: %v", p.weir, err)
	}
	message := strings.TrimSpace(said.String())
	switch exit.ExitCode() {
	case exitFailed:
		return nil, status.Error(failed, message)
	case exitUsage:
		return nil, status.Error(codes.InvalidArgument, message)
	}
	return nil, status.Errorf(codes.Internal, "%s: %v: %s", p.weir, err, message)
}

// volumes lists all volumes.
func (p *pool) volumes(ctx context.Context) ([]volume, error) {
	var list struct {
		Volumes []volume `json:"volumes"`
	}
	out, err := p.run(ctx, codes.Unavailable, "pool", "volume", "list", "--json", p.place)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, status.Errorf(codes.Internal, "weir pool volume list: %v", err)
	}
	return list.Volumes, nil
}

// find returns a volume, or nil.
func (p *pool) find(ctx context.Context, name string) (*volume, error) {
	volumes, err := p.volumes(ctx)
	for i := range volumes {
		if volumes[i].Name == name {
			return &volumes[i], nil
		}
	}
	return nil, err
}

// createPatience is how long a volume waits for donors. Kubernetes repeats a call that has failed.
const createPatience = "5"

// create fails if donors, their memory or groups are too few.
func (p *pool) create(ctx context.Context, name string, bytes int64, scheme string) error {
	_, err := p.run(ctx, codes.ResourceExhausted, "pool", "volume", "create", "--files", "--scheme", scheme,
		"--wait", createPatience, p.place, name, strconv.FormatInt(bytes, 10))
	return err
}

// remove fails if a client has the volume open.
func (p *pool) remove(ctx context.Context, name string) error {
	_, err := p.run(ctx, codes.FailedPrecondition, "pool", "volume", "rm", p.place, name)
	return err
}
