/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks: POSIX record locks, and flock(2) locks, which ignore each other. The client must have the
 * file open; its last release drops its locks.
 */
#ifndef WEIR_FSD_LOCK_H
#define WEIR_FSD_LOCK_H

#include "fsd/internal.h"

struct fsd_lock {
	TAILQ_ENTRY(fsd_lock) entry;
	struct fsd_client *client;
	uint64_t owner, start, end; /* inclusive */
	uint32_t type, pid;
	bool flock;
};

struct fsd_wait {
	TAILQ_ENTRY(fsd_wait) of_inode, of_client;
	struct fsd_inode *inode;
	struct fsd_lock wanted;
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

/* Adds a lock, or a waiting request, of an image. Return: 0; -ENOLCK; -ENOMEM. */
int fsd_lock_add(struct fsd *fsd, struct fsd_inode *inode, const struct fsd_lock *lock);
int fsd_lock_wait_add(struct fsd_inode *inode, const struct fsd_lock *wanted, uint64_t cancel,
		      void *call);

#endif
