/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Inodes: lifetime and attributes. */
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
 * fsd_inode_new() - create an inode without a name
 * @mode: permissions, and a type that mknod(2), symlink(2) or mkdir(2) can create
 * @target: of a symbolic link, @target_length bytes; otherwise NULL and 0
 *
 * The caller gives the inode a name or calls fsd_inode_put().
 *
 * Return: 0; -ENOSPC; -ENOMEM; -EINVAL bad @mode.
 */
int fsd_inode_new(struct fsd *fsd, uint32_t mode, uint32_t rdev, const void *target,
		  uint32_t target_length, struct fsd_inode **inode);

/*
 * The same with a number that a server gave out before: for an image. -EEXIST: the number is in
 * use.
 */
int fsd_inode_restore(struct fsd *fsd, uint64_t ino, uint32_t mode, const void *target,
		      uint32_t target_length, struct fsd_inode **inode);

/* The charge for an inode without its extended attributes. */
uint64_t fsd_inode_cost(const struct fsd_inode *inode);

/* Frees the inode if it has no names and no opens left. */
void fsd_inode_put(struct fsd *fsd, struct fsd_inode *inode);

/* The inode must have no opens, and so no map holders. */
void fsd_inode_free(struct fsd *fsd, struct fsd_inode *inode);

void fsd_inode_attr(const struct fsd_inode *inode, struct wire_fs_attr *attr);

/*
 * Updates ctime after a change of attributes. ctime always grows, even if the clock stepped back:
 * clients compare ctime to find the older of two replies.
 */
void fsd_inode_stamp(const struct fsd *fsd, struct fsd_inode *inode);
/* Updates times after a change of content. */
void fsd_inode_changed(const struct fsd *fsd, struct fsd_inode *inode);

/*
 * Return: 0; errors of fsd_file_resize(); -EINVAL a bad time; -EISDIR or -EINVAL not a regular
 * file.
 */
int fsd_inode_set(struct fsd *fsd, struct fsd_inode *inode, const struct wire_fs_setattr *set);

#endif
