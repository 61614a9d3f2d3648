/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regular files: their size, and which of their blocks are there. Invariant: what a file has
 * beyond its size, up to the end of its last extent, is zero unless a client is writing it.
 */
#ifndef WEIR_FSD_DATA_FILE_H
#define WEIR_FSD_DATA_FILE_H

#include "fsd/internal.h"

#define FSD_FILE_MAX 0x7ffffffffffff000u /* bytes */

/* truncate(2), up or down. Return: 0; -EFBIG; -ENOMEM. */
int fsd_file_resize(struct fsd *fsd, struct fsd_inode *inode, uint64_t size);

/* Fills the holes of a range, all or none. Return: 0; -ENOSPC; -EINPROGRESS try again soon;
 * -EFBIG; -EINVAL; -ENOMEM. */
int fsd_file_fill(struct fsd *fsd, struct fsd_inode *inode, uint64_t offset, uint64_t length);

/* fallocate(2). Return: 0; -EOPNOTSUPP the mode; and as fsd_file_fill(). */
int fsd_file_fallocate(struct fsd *fsd, struct fsd_inode *inode,
		       const struct wire_fs_fallocate *request);

/* A client has written, and what it set besides. Return: 0; -EFBIG; -EINVAL a bad time. */
int fsd_file_commit(struct fsd *fsd, struct fsd_inode *inode, const struct wire_fs_setattr *set);

/* Nobody has it open: frees what was allocated ahead of a writer and not used. */
void fsd_file_trim(struct fsd *fsd, struct fsd_inode *inode);

/* The file goes, and nobody holds its map. */
void fsd_file_free(struct fsd *fsd, struct fsd_inode *inode);

#endif
