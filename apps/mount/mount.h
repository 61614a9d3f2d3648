/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One mounted donor.
 *
 * Threads. The main thread sleeps until there is a signal, a work (work.h), another client
 * (share.h), or the end. Some threads receive requests from the kernel (loop.h); they may block in
 * calls to the donor. The callbacks of the session (done, answered, message) run in its own thread
 * or in any that submits: they never block. File data is therefore moved, and replied to, entirely
 * by callbacks (data.c): a thread that has started a transfer goes on receiving.
 *
 * Locks: mount.inodes' lock, an inode's lock, the volume's lock. None is taken while another
 * is held, and no call is made under one.
 */
#ifndef WEIR_MOUNT_MOUNT_H
#define WEIR_MOUNT_MOUNT_H

#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <weir/weir.h>

#include "apps/mount/fuse/affinity.h"
#include "apps/mount/deferred_work.h"
#include "apps/mount/inode/inode.h"
#include "apps/mount/fuse/loop.h"
#include "apps/mount/donor/sharing.h"
#include "apps/mount/donor/volume.h"

#define MOUNT_TRANSFER_MAX (1u << 20) /* bytes of one read or write; FUSE's own limit */
#define MOUNT_TIMEOUT_NS 5000000000ull /* of a call or transfer: a dead donor is EIO by then */

struct mount_options {
	const char *cmd; /* for messages */
	const char *donor;
	const char *mountpoint; /* absolute */
	const char *device;
	const char *key_path;
	unsigned int threads;
	bool read_only;
	bool allow_other;
};

struct mount {
	const struct mount_options *options;
	struct weir_key *key;
	struct weir_session *session;
	struct fuse_session *fuse;
	struct inodes inodes;
	struct volume volume;
	struct sharing share;
	struct deferred_queue deferred;
	struct loop loop;
	struct affinity caller;
	atomic_ulong changes; /* names or attributes changed here so often */
	atomic_uint in_flight; /* transfers, and calls that nobody waits for */
	bool background; /* log to syslog */
	bool greeted; /* FUSE_INIT has been answered */
};

/**
 * mount_open() - connect, mount, and start serving
 * @m: all zero
 *
 * Return: 0, then the caller owes mount_wait() and mount_close(); or an exit status, having said
 * why on standard error.
 */
int mount_open(struct mount *m, const struct mount_options *options);
/* Returns when the file system has been unmounted or a signal says so. */
void mount_wait(struct mount *m);
/* Finishes what is in flight, tells the donor what it doesn't know yet, and unmounts. */
void mount_close(struct mount *m);

/* The signals that end a mount, blocked in every thread. Call it before any is started. */
void mount_block_signals(void);

void mount_log(const struct mount *m, int priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Each mount_begin() keeps the session and the buffers until its mount_end(). */
void mount_begin(struct mount *m);
void mount_end(struct mount *m);

static inline struct mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

#endif
