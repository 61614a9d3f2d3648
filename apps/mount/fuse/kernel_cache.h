/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's knowledge of a file: pages and size. A client that shares the donor corrects both
 * when another client has changed the file.
 *
 * The notifications wait for reads of the pages concerned, so only the main thread sends them. Once
 * the receiving threads have stopped, a notification would wait forever: none is sent any more.
 */
#ifndef WEIR_APPS_MOUNT_FUSE_KERNEL_CACHE_H
#define WEIR_APPS_MOUNT_FUSE_KERNEL_CACHE_H

#include "apps/mount/mount.h"

/**
 * kernel_cache_is_stale() - whether another client has changed a file unknown to the kernel
 * @inode: has learned @locked
 */
bool kernel_cache_is_stale(struct inode *inode, const struct wire_fs_locked *locked);

/* Corrects pages and size. Context: the main thread. */
void kernel_cache_refresh(struct inode *inode, const struct wire_fs_locked *locked);

/* Drops the pages from @offset on, soon. Context: any. */
void kernel_cache_drop(struct mount *m, uint64_t ino, uint64_t offset);

#endif
