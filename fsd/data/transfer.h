/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes of files whose bytes the host moves: bytes of the volume and their places in
 * the staging area.
 *
 * A newly allocated block holds anything. So the write covers the whole block, with zeroes around
 * the client's bytes.
 */
#ifndef WEIR_FSD_DATA_TRANSFER_H
#define WEIR_FSD_DATA_TRANSFER_H

#include "fsd/internal.h"

/*
 * Tells the host the bytes to move. @length: receives how many the file has there. Return: 0;
 * -EINVAL a bad range or place.
 */
int fsd_transfer_read(struct fsd *fsd, struct fsd_inode *inode,
		      const struct wire_fs_transfer *transfer, uint64_t *length);

/* The same; also raises the size. Return: also -EFBIG; -ENOSPC; -ENOMEM. */
int fsd_transfer_write(struct fsd *fsd, struct fsd_inode *inode,
		       const struct wire_fs_transfer *transfer);

#endif
