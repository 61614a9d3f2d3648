/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Changes of names completed by this client, while alone and with knowledge of the names (names.h).
 * The donor hears of changes later (change_log.h), and comes to the same attributes.
 *
 * Each function returns false if the donor must be asked.
 */
#ifndef WEIR_APPS_MOUNT_FUSE_LOCAL_H
#define WEIR_APPS_MOUNT_FUSE_LOCAL_H

#include "apps/mount/donor/call.h"

struct local_side {
	struct inode *dir;
	const char *name;
};

/*
 * Makes a file, opened at the donor; the caller counts the open in inode.opens. @file: receives the
 * map. @inode: receives the inode, with a lookup by the kernel; NULL: no memory. @phase: of the
 * attributes
 */
bool local_create(fuse_req_t req, struct local_side at, mode_t mode, struct reserved_file *file,
		  struct inode **inode, unsigned int *phase);
/* Makes a directory or, with a @target, a symbolic link. */
bool local_make(fuse_req_t req, struct local_side at, mode_t mode, const char *target,
		struct inode **inode, unsigned int *phase);
bool local_unlink(struct local_side at);
bool local_rmdir(struct local_side at);
/* For any type but directories; a name replaced must not be a directory's, either. */
bool local_rename(struct local_side from, struct local_side to);

#endif
