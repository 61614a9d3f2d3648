/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inodes: their life and their attributes. */
#ifndef WEIR_FSD_INODE_H
#define WEIR_FSD_INODE_H

#include <sys/stat.h>

#include "fsd/internal.h"

static inline bool fsd_inode_is_dir(const struct fsd_inode *inode)
{
	return S_ISDIR(inode->mode);
}

static inline bool fsd_inode_is_file(const struct fsd_inode *inode)
{
	return S_ISREG(inode->mode);
}

/* Return: the inode, or NULL. */
struct fsd_inode *fsd_inode_find(const struct fsd *fsd, uint64_t ino);

/**
 * fsd_inode_new() - an inode without a name
 * @mode: a type that mknod(2) or symlink(2) or mkdir(2) knows, and permissions
 * @target: of a symbolic link, @target_length bytes; else NULL, 0
 *
 * The caller gives it a name, or fsd_inode_put()s it.
 * Return: 0; -ENOSPC; -ENOMEM; -EINVAL the mode.
 */
int fsd_inode_new(struct fsd *fsd, uint32_t mode, uint32_t rdev, const void *target,
		  uint32_t target_length, struct fsd_inode **inode);

/* A name or an open of it has gone, or nothing came of it: frees it if nothing is left. */
void fsd_inode_put(struct fsd *fsd, struct fsd_inode *inode);

/* Nobody has it open, so nobody holds its map. */
void fsd_inode_free(struct fsd *fsd, struct fsd_inode *inode);

void fsd_inode_attr(const struct fsd_inode *inode, struct wire_fs_attr *attr);

/*
 * Its attributes have changed, now. ctime always grows, also when the clock has stepped back:
 * clients tell by it which of two answers is the older one.
 */
void fsd_inode_stamp(const struct fsd *fsd, struct fsd_inode *inode);
/* Its content has changed, now. */
void fsd_inode_changed(const struct fsd *fsd, struct fsd_inode *inode);

/* Return: 0; errors of fsd_file_resize(); -EINVAL a bad time; -EISDIR, -EINVAL no size to set. */
int fsd_inode_set(struct fsd *fsd, struct fsd_inode *inode, const struct wire_fs_setattr *set);

#endif
