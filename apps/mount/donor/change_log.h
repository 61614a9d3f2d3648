/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Changes completed by this client that the donor has not heard of. The client sends changes in
 * order, many to a message (FS_BATCH), one message at a time.
 *
 * The client uses the log while alone (sharing.h), and until the log is empty. Changes wait
 * CHANGE_LOG_MS at most, unless the donor is slow. A call with a waiter first settles the log, so
 * the donor sees all changes in order. After the death of this client, the donor's state is that
 * of a moment before.
 *
 * A batch without an answer is sent again, with the same number. A donor that has taken away the
 * right to cache refuses changes of names: the client loses these and all later ones, forgets
 * all knowledge, and says so on standard error and in the next fsync(2) of the files concerned.
 *
 * Locks: change_log.lock guards everything here. Each function takes the lock; the caller may hold
 * that of mount.names or of an inode.
 */
#ifndef WEIR_APPS_MOUNT_DONOR_CHANGE_LOG_H
#define WEIR_APPS_MOUNT_DONOR_CHANGE_LOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/message.h>

#include "wire/fs.h"

#define CHANGE_LOG_MS 10
#define CHANGE_LOG_MAX 512 /* waiting changes; beyond, a change of names is a call */
#define CHANGE_MAX 1024 /* bytes of a message */

struct mount;
struct fuse_req;

struct change {
	struct change *next;
	weir_reply_fn *fn; /* NULL: a change of names, expected to succeed */
	void *arg;
	struct wire_fs_change head;
	char message[];
};

struct change_log {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct change *first, **last; /* waiting */
	struct change *flight; /* of the batch under way, or to be sent again */
	unsigned int waiting; /* changes, ... */
	size_t bytes; /* ... and the bytes of these */
	unsigned int flying;
	bool is_sending; /* a batch is at the donor, and a thread awaits the answer */
	uint64_t number; /* of the last batch */
	uint64_t added, settled; /* changes */
	uint64_t lost_first, lost_last; /* changes; 0: none */
	bool is_armed; /* the timer */
	int fd; /* a timerfd: readable when waiting changes are due */
	atomic_bool is_used; /* the donor knows batches */
	atomic_bool has_room; /* the donor has, for names */
	char *batch; /* of the sending thread */
};

int change_log_init(struct change_log *log); /* 0; -ENOMEM or another errno */
void change_log_fini(struct change_log *log);

/* Whether changes are to wait in the log. */
bool change_log_takes(struct mount *m);
/* Whether a change of names may, too. */
bool change_log_takes_names(struct mount *m);

/* A change of names. NULL: no memory. @message: at most CHANGE_MAX bytes */
struct change *change_new(const void *message, size_t length);
/*
 * Adds a change, which is given, and due in CHANGE_LOG_MS. Context: any.
 * Return: the change's number.
 */
uint64_t change_log_add(struct mount *m, struct change *change);
/* Sends a full batch, if there is one. Context: outside all locks. */
void change_log_full(struct mount *m);

/**
 * change_log_send() - add a change of a file, or send the change now if the log takes none
 * @message: as for call_later()
 * @fn: receives a reply as from call_later()
 *
 * Return: 0 (@fn is called once), or -EIO (not called).
 */
int change_log_send(struct mount *m, const void *message, size_t length, uint64_t timeout_ns,
		    weir_reply_fn *fn, void *arg);

/**
 * change_log_settle() - wait until the donor has all changes so far
 * @req: may be interrupted; or NULL
 *
 * Context: outside callbacks. Return: 0; -EINTR; -EIO no answer in time.
 */
int change_log_settle(struct mount *m, struct fuse_req *req);
/* Whether a change so numbered was lost. */
bool change_log_has_lost(struct mount *m, uint64_t number);
bool change_log_is_empty(struct mount *m);

/* Something will be due in CHANGE_LOG_MS. */
void change_log_arm(struct mount *m);
/* Sends waiting changes, unless a batch is under way. Context: the main thread. */
void change_log_run(struct mount *m);

#endif
