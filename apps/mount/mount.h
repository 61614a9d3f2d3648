/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A mounted donor.
 *
 * Threads. The main thread sleeps until a signal, deferred work (deferred_work.h), a second client
 * (sharing.h), or the end. Receiving threads take requests from the kernel (loop.h) and may block
 * in calls to the donor. Callbacks of the session run in its thread or in any thread that submits,
 * and never block. File data is therefore moved, and replied to, by callbacks only (io.c): a
 * receiving thread starts a transfer and goes on receiving.
 *
 * Locks: that of mount.inodes, of mount.names, of an inode, of the volume. No thread holds two of
 * these, and no thread calls the donor while holding one. Exceptions: local.c takes the locks of
 * inodes, of mount.reserve and of mount.log, one after the other, within mount.names.lock; and
 * writeback.c takes mount.log.lock within an inode's. See direct.h for direct.lock, which is taken
 * before any of them.
 */
#ifndef WEIR_APPS_MOUNT_MOUNT_H
#define WEIR_APPS_MOUNT_MOUNT_H

#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <weir/weir.h>

#include "apps/log/log.h"
#include "apps/metrics/metrics_server.h"
#include "apps/mount/direct/direct.h"
#include "apps/mount/fuse/affinity.h"
#include "apps/mount/deferred_work.h"
#include "apps/mount/inode/inode.h"
#include "apps/mount/inode/names.h"
#include "apps/mount/fuse/loop.h"
#include "apps/mount/operation_time.h"
#include "apps/mount/mount_page.h"
#include "apps/mount/donor/change_log.h"
#include "apps/mount/donor/reserve.h"
#include "apps/mount/donor/sharing.h"
#include "apps/mount/donor/volume.h"
#include "apps/mount/pool/link.h"

#define MOUNT_TRANSFER_MAX (1u << 20) /* bytes per read or write; FUSE's own limit */
struct mount_options {
	const char *cmd; /* for messages */
	const char *donor;
	const char *mountpoint; /* absolute */
	const char *device;
	const char *key_path;
	const char *seal_path; /* the key of sealed files, or NULL */
	const char *seal_state_path; /* absolute: the state of the last mount, or NULL */
	unsigned int threads;
	unsigned int timeout; /* seconds per call or transfer; then EIO, unless @hard */
	bool hard; /* wait for ever; after the timeout, a signal to the program ends the wait */
	bool foreground;
	bool read_only;
	bool allow_other;
	bool no_sandbox;
	enum log_format log;
	struct http_options metrics;
};

/* Open directories. @list: guarded by @lock */
struct open_dirs {
	pthread_mutex_t lock;
	LIST_HEAD(, dir) list;
};

struct mount {
	const struct mount_options *options;
	struct weir_key *key;
	bool is_pool; /* @link leads to a pool's volume; else @session and @volume to a donor */
	struct link link;
	struct weir_session *session;
	struct fuse_session *fuse;
	struct inodes inodes;
	struct names names;
	struct volume volume;
	struct sealed_tree *sealed; /* NULL: the files are not sealed */
	struct sharing share;
	struct change_log log;
	struct reserve reserve;
	struct deferred_queue deferred;
	struct loop loop;
	struct affinity caller;
	struct direct direct;
	struct open_dirs dirs;
	struct traffic traffic;
	pthread_rwlock_t opening; /* read by opens, written by snapshots; before other locks */
	struct mount_page_writer page;
	struct operation_time operation_time;
	struct metrics_server *metrics_server;
	atomic_bool is_down; /* the donor is gone for good */
	atomic_ulong changes; /* number of changes of names or attributes by this client */
	atomic_uint in_flight; /* transfers, and calls without a waiter */
	bool greeted; /* FUSE_INIT has been answered */
	bool in_sandbox; /* the watchdog unmounts, because this process may not */
	bool is_left; /* still mounted, for the watchdog */
};

/**
 * mount_open() - connect, mount, and start serving
 * @m: all zero
 * @options: kept until mount_close()
 *
 * On success the caller owes mount_wait() and mount_close().
 *
 * Return: 0, or an exit status after a message.
 */
int mount_open(struct mount *m, const struct mount_options *options);
/* Returns after an unmount or a signal. */
void mount_wait(struct mount *m);
/* Completes what is in flight, commits dirty inodes to the donor, and unmounts or sets @is_left. */
void mount_close(struct mount *m);

/* Writes to the log, within the rate of the whole mount. */
void mount_log(enum weir_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* No server knows a mount of a pool any more: operations fail from now on. */
void mount_lost(struct mount *m);

/* Blocks the signals that end a mount. Must be called before any thread is started. */
void mount_block_signals(void);


/* Between mount_begin() and mount_end() the session and the buffers stay valid. */
void mount_begin(struct mount *m);
void mount_end(struct mount *m);

static inline struct mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

#endif
