/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A process that has attached, and its requests in flight. */
#ifndef WEIR_APPS_MOUNT_DIRECT_LANE_H
#define WEIR_APPS_MOUNT_DIRECT_LANE_H

#include <sys/types.h>

#include "apps/mount/direct/direct.h"
#include "apps/mount/fuse/io.h"

/*
 * @io: first member, so that the gate's pass leads here
 * @busy: in flight, whatever the process has made of the slot
 */
struct lane_request {
	struct io io;
	atomic_bool busy;
	struct lane *lane;
	struct direct_grant *grant;
	struct wire_files_slot *slot;
};

/**
 * struct lane - of one process
 * @shared: FILES_LANE_BYTES, which the process writes to, too
 * @memory: @shared, registered
 * @busy: requests in flight
 */
struct lane {
	struct mount *mount;
	struct wire_files_lane *shared;
	struct weir_memory *memory;
	uint64_t secret;
	pid_t pid;
	int pid_fd; /* readable when the process has ended */
	atomic_uint busy;
	unsigned int next_grant; /* to be taken from another file, if all are in use */
	struct lane *next_dead;
	struct direct_grant grant[FILES_GRANTS];
	struct lane_request request[FILES_SLOTS];
};

/*
 * Makes a lane for process @pid. Return: the lane, or NULL. @fd: of its memory, the caller's.
 */
struct lane *lane_create(struct mount *m, pid_t pid, int *fd);
/* After lane_end() has returned true. */
void lane_free(struct lane *lane);

/*
 * Takes the grants back. direct.lock held; the poller does not know the lane any more. Return:
 * false: requests are in flight, so call again later.
 */
bool lane_end(struct lane *lane);

/* Starts the posted requests. Return: whether there were any. Context: the poller. */
bool lane_serve(struct lane *lane);

/* The poller. @arg: the mount. */
void *ring_run(void *arg);
/* Wakes the poller. */
void ring_wake(struct direct *direct);

#endif
