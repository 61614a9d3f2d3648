/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Set-user-ID and set-group-ID: a change of the file by another takes them away.
 *
 * Left to itself the kernel asks for the capabilities of a file before each write, a round trip
 * as long as the write itself. It does without if the file system takes the bits away
 * (FUSE_HANDLE_KILLPRIV_V2): so this one does. libfuse before 3.17 can't say so, hence the detour
 * in privilege_hook().
 */
#ifndef WEIR_APPS_MOUNT_FUSE_PRIVILEGE_H
#define WEIR_APPS_MOUNT_FUSE_PRIVILEGE_H

#include <stdint.h>

#include "apps/mount/fuse/ops.h"

/* Between mounting and the first request: the answer to FUSE_INIT will promise it. */
int privilege_hook(struct mount *m);

/* @mode after a change of owner. */
uint32_t privilege_drop(uint32_t mode);

/* @req is about to change the data of @inode: tells the donor if that costs a bit. */
void privilege_check(fuse_req_t req, struct inode *inode);

#endif
