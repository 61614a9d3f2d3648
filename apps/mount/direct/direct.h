/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes that programs post in shared memory, past the kernel: see wire/files.h and
 * docs/explanation/files.md. The other end is preload/files.
 *
 * Threads. The door (door.c) answers processes that attach, and clears up after those that end. The
 * poller (ring.c) looks at the lanes' posted requests and starts transfers, as receiving threads
 * do for the kernel's requests. Both start with the first process that asks. Receiving threads
 * answer the ioctl()s (grant.c).
 *
 * Lock: direct.lock guards lanes and grants, where not stated otherwise. The poller holds it while
 * it serves, so other threads announce a visit. No thread takes direct.lock in a callback, nor
 * while it holds an inode's lock.
 */
#ifndef WEIR_APPS_MOUNT_DIRECT_DIRECT_H
#define WEIR_APPS_MOUNT_DIRECT_DIRECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "wire/files.h"

#define DIRECT_LANES_MAX 64u

struct inode;
struct lane;
struct mount;

/**
 * struct direct_grant - lets a lane's requests name a file
 * @inode: with a reference; NULL: free
 * @closes: as in the lane, which the process may have overwritten
 * @access: FILES_MAY_*
 * @busy: requests in flight
 */
struct direct_grant {
	LIST_ENTRY(direct_grant) of_inode;
	struct lane *lane;
	struct inode *inode;
	uint32_t closes;
	unsigned int access;
	atomic_uint busy;
};

LIST_HEAD(direct_grants, direct_grant);

/**
 * struct direct - all zero: nobody has asked yet
 * @visitors: threads that want the lock: the poller makes way
 * @secret: told to processes that have opened a file
 * @wakeups: a futex, on which the poller sleeps
 * @cpu: of the poller; @moved_ns: when it last left one to a program; both the poller's own
 * @knocks: calls of the kernel in a row for files with grants, while the poller sleeps
 * @knocks_wanted: so many wake the poller
 */
struct direct {
	pthread_mutex_t lock;
	atomic_uint visitors;
	bool is_open;
	struct lane *lane[DIRECT_LANES_MAX];
	struct lane *dead; /* of ended processes, with requests in flight; the door's */
	int listener, end_fd;
	char name[FILES_NAME];
	uint64_t secret;
	pthread_t door, poller;
	uint32_t wakeups;
	uint32_t cpu;
	uint64_t moved_ns;
	atomic_bool asleep, stops;
	atomic_ullong knocked_ns;
	atomic_uint knocks, knocks_wanted;
};

void direct_init(struct direct *direct);

/* Opens the door, unless it is open. Return: 0; -ENOTTY: this mount has none; -errno. */
int direct_hello(struct mount *m, struct wire_files_hello *hello);

/**
 * direct_ask() - grant a file to a lane
 * @access: FILES_MAY_* of the descriptor that the process asks with
 *
 * Return: 0; -EACCES: another's lane, or it has ended; -EMFILE: all grants are busy.
 */
int direct_ask(struct mount *m, struct inode *inode, unsigned int access,
	       struct wire_files_ask *ask);

/* A program has mapped the file: until its last close, requests are the kernel's. */
void direct_mapped(struct inode *inode);

/* A descriptor of the file is being closed. Context: a receiving thread, before the reply. */
void direct_closes(struct inode *inode);

/*
 * The kernel has sent a read or write of a file with grants: perhaps the first of many, so that the
 * poller should wake.
 */
void direct_knock(struct mount *m);

/* Has the poller look at what is posted. */
void direct_wake(struct mount *m);

/* Ends the threads. Requests in flight go on: mount.in_flight counts them. */
void direct_stop(struct mount *m);
void direct_close(struct mount *m);

/* Takes and gives direct.lock, in any thread but the poller. */
void direct_visit(struct direct *direct);
void direct_leave(struct direct *direct);

#endif
