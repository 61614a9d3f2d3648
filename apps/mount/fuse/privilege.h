/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Clearing set-user-ID and set-group-ID when another user changes a file.
 *
 * By default the kernel reads a file's capabilities before each write, a round trip as long as the
 * write. It omits this if the file system clears the bits (FUSE_HANDLE_KILLPRIV_V2), so weir does.
 * libfuse before 3.17 cannot announce this, hence privilege_hook().
 */
#ifndef WEIR_APPS_MOUNT_FUSE_PRIVILEGE_H
#define WEIR_APPS_MOUNT_FUSE_PRIVILEGE_H

#include <stdint.h>

#include "apps/mount/fuse/ops.h"

/* To be called between mounting and the first request: patches the reply to FUSE_INIT. */
int privilege_hook(struct mount *m);

/* The mode of a file after the user of @req has changed its owner or data. */
uint32_t privilege_drop(fuse_req_t req, const struct wire_fs_attr *attr);

/* Called before @req changes the data of @inode: clears the bits at the donor if necessary. */
void privilege_check(fuse_req_t req, struct inode *inode);

#endif
