// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const lookInterval = 20 * time.Millisecond

// mounts are the processes of weir mount that this driver has started, by mount point. They run in
// the foreground: what they say is in the driver's log, and their end in ended.
type mounts struct {
	lock  sync.Mutex
	ended map[string]chan struct{}
}

func newMounts() *mounts {
	return &mounts{ended: map[string]chan struct{}{}}
}

// state of a mount point
type state int

const (
	notMounted state = iota
	mounted
	stale // its process has died
)

func stateOf(target string) (state, error) {
	var own, parent syscall.Stat_t
	err := syscall.Stat(target, &own)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return notMounted, nil
	case errors.Is(err, syscall.ENOTCONN), errors.Is(err, syscall.ECONNABORTED):
		return stale, nil
	case err != nil:
		return notMounted, &os.PathError{Op: "stat", Path: target, Err: err}
	}
	if err := syscall.Stat(target+"/..", &parent); err != nil {
		return notMounted, &os.PathError{Op: "stat", Path: target + "/..", Err: err}
	}
	if own.Dev == parent.Dev {
		return notMounted, nil
	}
	return mounted, nil
}

// start mounts a volume, and returns when it is mounted.
func (m *mounts) start(ctx context.Context, p *pool, volume, target string, readOnly bool) error {
	var said tail
	words := []string{"mount", "--foreground"}
	if readOnly {
		words = append(words, "--read-only")
	}
	command := exec.Command(p.weir, append(words, p.place+"/"+volume, target)...)
	command.Stderr = &said
	if err := command.Start(); err != nil {
		return status.Errorf(codes.Internal, "%s: %v", p.weir, err)
	}
	ended := make(chan struct{})
	go func() {
		command.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return status.Error(codes.Internal, said.text())
		case <-ctx.Done():
			command.Process.Signal(syscall.SIGTERM)
			<-ended
			return status.FromContextError(ctx.Err()).Err()
		case <-time.After(lookInterval):
		}
		if now, err := stateOf(target); err == nil && now == mounted {
			m.lock.Lock()
			defer m.lock.Unlock()
			m.ended[target] = ended
			return nil
		}
	}
}

// end unmounts, and waits for the process, which then has told the pool so. If a process has died,
// the one beside it may have unmounted meanwhile.
func (m *mounts) end(ctx context.Context, target string, flags int) error {
	err := syscall.Unmount(target, flags)
	switch {
	case errors.Is(err, syscall.EBUSY):
		return status.Errorf(codes.FailedPrecondition, "%s is in use", target)
	case err != nil && !errors.Is(err, syscall.EINVAL):
		return status.Errorf(codes.Internal, "unmount %s: %v", target, err)
	}
	m.lock.Lock()
	ended := m.ended[target]
	delete(m.ended, target)
	m.lock.Unlock()
	if ended == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// tail passes a process's messages on to the log, and keeps the last ones.
type tail struct {
	lock sync.Mutex
	kept string
}

const tailBytes = 1000

func (t *tail) Write(bytes []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.kept += string(bytes)
	t.kept = t.kept[max(0, len(t.kept)-tailBytes):]
	return os.Stderr.Write(bytes)
}

func (t *tail) text() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return strings.TrimSpace(t.kept)
}
