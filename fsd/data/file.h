/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Regular files: size and allocated blocks. Invariant: bytes past the size, up to the end of the
 * last extent, are zero unless a client is writing there.
 *
 * If the host moves the bytes, the rest of the block in which the file ends holds anything:
 * growing a file zeroes the bytes. So a request that is forgotten has changed no byte of any
 * file.
 */
#ifndef WEIR_FSD_DATA_FILE_H
#define WEIR_FSD_DATA_FILE_H

#include "fsd/internal.h"

#define FSD_FILE_MAX 0x7ffffffffffff000u /* bytes */

/* truncate(2), up or down. Return: 0; -EFBIG; -ENOMEM. */
int fsd_file_resize(struct fsd *fsd, struct fsd_inode *inode, uint64_t size);

/*
 * Allocates all holes of a range, or none. Return: 0; -ENOSPC; -EINPROGRESS try again soon; -EFBIG;
 * -EINVAL; -ENOMEM.
 */
int fsd_file_fill(struct fsd *fsd, struct fsd_inode *inode, uint64_t offset, uint64_t length);

/*
 * The same, for a request that writes all bytes from @offset on: the host moves bytes, and blocks
 * that the request allocates are not zeroed.
 */
int fsd_file_fill_raw(struct fsd *fsd, struct fsd_inode *inode, uint64_t offset, uint64_t length);

/*
 * Allocates the first FS_FIRST_BYTES of an empty file, if few files hold such blocks and free
 * memory covers them many times: otherwise files that nobody writes would keep it from a writer.
 */
void fsd_file_fill_ahead(struct fsd *fsd, struct fsd_inode *inode);

/* Whether the block of @offset is a hole. */
bool fsd_file_is_hole(const struct fsd_inode *inode, uint64_t offset);

/* Raises the size to @size. Does nothing if the file is as long already. */
void fsd_file_grow(struct fsd *fsd, struct fsd_inode *inode, uint64_t size);

/* fallocate(2). Return: 0; -EOPNOTSUPP unknown mode; errors of fsd_file_fill(). */
int fsd_file_fallocate(struct fsd *fsd, struct fsd_inode *inode,
		       const struct wire_fs_fallocate *request);

/* Sets size and attributes after a client's writes. Return: 0; -EFBIG; -EINVAL a bad time. */
int fsd_file_commit(struct fsd_client *client, struct fsd_inode *inode,
		    const struct wire_fs_setattr *set);

/* Return: the last byte; 0 if the file is empty, or if the host moves the bytes. */
uint8_t fsd_file_last_byte(const struct fsd *fsd, const struct fsd_inode *inode);

/* No client holds the map: frees blocks that were allocated ahead of a writer and not used. */
void fsd_file_trim(struct fsd *fsd, struct fsd_inode *inode);

/* Frees the extents of a file without map holders. */
void fsd_file_free(struct fsd *fsd, struct fsd_inode *inode);

#endif
