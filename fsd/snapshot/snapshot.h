/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A copy of a directory with all below, of one moment, made in slices of fsd_work().
 *
 * While the copy is made, requests that change the file system wait, so what is copied stands
 * still. The copy gets its name at the end. Until then no client can reach it.
 */
#ifndef WEIR_FSD_SNAPSHOT_SNAPSHOT_H
#define WEIR_FSD_SNAPSHOT_SNAPSHOT_H

#include "fsd/dir.h"

/**
 * fsd_snapshot_begin() - begin to copy a directory
 * @call: of @client; answered with the attributes of the copy, or with -EFBIG; -ENOSPC; -ENOMEM;
 *	-ETIMEDOUT. Then the copy is removed, in slices, too
 * @dir: the directory
 * @parent: directory of the copy; left out of the copy if below @dir
 * @name: of the copy
 * @patience_ms: how long other requests may wait
 *
 * No client writes to files below @dir. The copy has names, attributes, extended attributes, hard
 * links among its files, bytes and holes.
 *
 * Return: 0; or nothing has begun, and -EEXIST; -ENOENT @parent has been removed; -EAGAIN an
 * earlier copy is being removed; -ENOMEM.
 */
int fsd_snapshot_begin(struct fsd_client *client, void *call, struct fsd_inode *dir,
		       struct fsd_inode *parent, struct fsd_text name, uint32_t patience_ms);

/* Does a slice, of about a millisecond. */
void fsd_snapshot_work(struct fsd *fsd);

/* Whether requests that change the file system wait. */
bool fsd_snapshot_freezes(const struct fsd *fsd);

/* Whether a number is of an inode of a copy that is not whole: clients cannot reach it. */
bool fsd_snapshot_hides(const struct fsd *fsd, uint64_t ino);

/* The client leaves: answers the call, and removes the copy. */
void fsd_snapshot_drop(struct fsd_client *client);

/* The file system ends: answers nothing, and leaves inodes and names. */
void fsd_snapshot_fini(struct fsd *fsd);

#endif
