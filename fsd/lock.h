/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Locks: POSIX record locks and those of flock(2), which don't see each other. Who asks has the
 * file open; its last release drops its locks.
 */
#ifndef WEIR_FSD_LOCK_H
#define WEIR_FSD_LOCK_H

#include "fsd/internal.h"

/* fcntl(F_GETLK): @lock becomes what is in the way, or of type F_UNLCK. Return: 0; -EINVAL. */
int fsd_lock_get(struct fsd_client *client, struct fsd_inode *inode, struct wire_fs_lock *lock);

/**
 * fsd_lock_set() - set, change or remove a lock
 * @call: answered later if the request must wait
 * @later: set to true in that case; the return value is 0 then
 *
 * Return: 0; -EINVAL; -EAGAIN; -EDEADLK; -ENOLCK too many; -ENOMEM.
 */
int fsd_lock_set(struct fsd_client *client, struct fsd_inode *inode,
		 const struct wire_fs_lock *lock, void *call, bool *later);

/* A request that waits ends with -EINTR. It may be granted already: that's not an error. */
void fsd_lock_cancel(struct fsd_client *client, struct fsd_inode *inode, uint64_t cancel);

/* Drops what this client has locked, or waits to lock, in a file. */
void fsd_lock_drop(struct fsd_client *client, struct fsd_inode *inode);

#endif
