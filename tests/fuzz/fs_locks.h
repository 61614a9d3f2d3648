/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A model of the locks that a file server has granted: a byte of it for a byte of a file. */
#ifndef WEIR_TESTS_FUZZ_FS_LOCKS_H
#define WEIR_TESTS_FUZZ_FS_LOCKS_H

#include "fsd/internal.h"

void locks_init(void);

/* The server has granted @lock, or a waiter for it has given up what it held before. */
void locks_set(unsigned int client, const struct wire_fs_lock *lock);
void locks_given_up(unsigned int client, const struct wire_fs_lock *lock);

/* Forgets the locks of files that the client has not open. */
void locks_sync(const struct fsd *fsd, unsigned int client, const struct fsd_client *peer);

/**
 * locks_check() - compare the locks of a file with those that the server reports
 * @get: asks FS_GETLK; returns false for no such file
 */
void locks_check(uint64_t ino, bool (*get)(struct wire_fs_lock *lock));

#endif
