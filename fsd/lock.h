/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks: POSIX record locks, and flock(2) locks, which ignore each other. The client must have the
 * file open; its last release drops its locks.
 *
 * A file has L locks and W waiting requests: at most FSD_FILE_LOCKS_MAX and FSD_WAITS_MAX, and not
 * both, because a request is refused if L W would exceed FSD_FILE_PAIRS_MAX. But an owner of one
 * lock may always unlock any bytes. Owners were within the bounds when they set their first
 * lock, so L is at most twice what the bounds say. A file server keeps the memory for that split
 * with each owner's only lock.
 *
 * A step looks at a lock or at a waiting request. A request looks at each lock of the file a few
 * times, and at each waiting request once. A waiting request passes each lock once in its life, and
 * its grant looks at the locks once, and adds two at most. So a request costs 4 L + W steps on
 * average, and no request more than W (2 L + 3 W) + 4 L, or FSD_STEPS_MAX. Within two locks of a
 * bound, a grant looks at the locks twice, which is W L more. A request that waits also follows 64
 * owners, each among its client's waiting requests.
 */
#ifndef WEIR_FSD_LOCK_H
#define WEIR_FSD_LOCK_H

#include "fsd/internal.h"

enum {
	FSD_FILE_LOCKS_MAX = 4096,
	FSD_CLIENT_LOCKS_MAX = 16384, /* in all files */
	FSD_WAITS_MAX = 1024, /* of a file, and of a client */
	FSD_FILE_PAIRS_MAX = 1 << 19, /* a file's locks times its waiting requests */
	FSD_STEPS_MAX = 11 << 19, /* of a request */
};

struct fsd_lock {
	TAILQ_ENTRY(fsd_lock) entry;
	struct fsd_client *client;
	uint64_t owner, start, end; /* inclusive */
	uint32_t type, pid; /* F_UNLCK: released, until the request ends */
	bool flock;
	struct fsd_lock *spare; /* to split this lock, or NULL. An owner's only lock has one. */
};

struct fsd_wait {
	TAILQ_ENTRY(fsd_wait) of_inode, of_client;
	struct fsd_inode *inode;
	struct fsd_lock wanted;
	struct fsd_lock *blocker; /* the first of the file's locks that conflicts */
	uint64_t cancel;
	void *call;
};

/* fcntl(F_GETLK): @lock receives the conflicting lock, or type F_UNLCK. Return: 0; -EINVAL. */
int fsd_lock_get(struct fsd_client *client, struct fsd_inode *inode, struct wire_fs_lock *lock);

/**
 * fsd_lock_set() - set, change or remove a lock
 * @call: answered later if the request must wait
 * @later: set to true if the request waits; the return value is then 0
 *
 * Return: 0; -EINVAL; -EAGAIN; -EDEADLK; -ENOLCK too many locks; -ENOMEM.
 */
int fsd_lock_set(struct fsd_client *client, struct fsd_inode *inode,
		 const struct wire_fs_lock *lock, void *call, bool *later);

/* The reply to a request whose lock has been set. */
void fsd_lock_reply(struct fsd_client *client, const struct fsd_inode *inode,
		    struct wire_fs_locked *locked);

/* A waiting request ends with -EINTR. No error if the lock has been granted already. */
void fsd_lock_cancel(struct fsd_client *client, struct fsd_inode *inode, uint64_t cancel);

/* Drops the client's locks and waiting lock requests in a file. */
void fsd_lock_drop(struct fsd_client *client, struct fsd_inode *inode);

/* The server ends: frees all locks and waiting requests of a file without an answer. */
void fsd_lock_abandon(struct fsd *fsd, struct fsd_inode *inode);

/*
 * Adds a lock, or a waiting request, of an image. Return: 0; -ENOLCK too many; -ENOMEM; -EINVAL a
 * request without a lock to wait for.
 */
int fsd_lock_add(struct fsd *fsd, struct fsd_inode *inode, const struct fsd_lock *lock,
		 bool has_spare);
int fsd_lock_wait_add(struct fsd_inode *inode, const struct fsd_lock *wanted, uint64_t cancel,
		      void *call);

#endif
