/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A snapshot: the donor copies a directory while this client has nothing in flight. The gates of
 * all open files are entered alone, so transfers wait, whether of the kernel or past it. Opens
 * wait for mount.opening. All sizes and changes of names are told before.
 */
#ifndef WEIR_APPS_MOUNT_DONOR_SNAPSHOT_H
#define WEIR_APPS_MOUNT_DONOR_SNAPSHOT_H

#include "apps/mount/mount.h"
#include "wire/files.h"

/* Copies the directory @ino. Return: 0, or an errno for the program. */
int snapshot_take(fuse_req_t req, uint64_t ino, const struct wire_files_snapshot *wanted);

#endif
