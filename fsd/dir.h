/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Directories: names, and the operations on them.
 *
 * A name is given by its text and length, checked already: 1 to FS_NAME_MAX bytes without '/' and
 * NUL, not "." and not "..". Directories are checked to be ones.
 */
#ifndef WEIR_FSD_DIR_H
#define WEIR_FSD_DIR_H

#include "fsd/internal.h"

struct fsd_text {
	const char *at;
	uint32_t length;
};

void fsd_dir_init(struct fsd_inode *dir, struct fsd_inode *parent);
/* Frees the directory's own memory; it is empty. */
void fsd_dir_fini(struct fsd_inode *dir);

/* Return: the inode of this name, or NULL. */
struct fsd_inode *fsd_dir_find(const struct fsd *fsd, const struct fsd_inode *dir,
			       struct fsd_text text);

/**
 * fsd_dir_link() - give an inode a name in @dir
 *
 * The name does not exist. Counts links, of @dir too if @inode is a directory, and sets times.
 * Return: 0; -ENOENT @dir is removed itself; -EMLINK; -ENOSPC; -ENOMEM.
 */
int fsd_dir_link(struct fsd *fsd, struct fsd_inode *dir, struct fsd_text text,
		 struct fsd_inode *inode);

/* Return: 0; -ENOENT; -EISDIR. */
int fsd_dir_unlink(struct fsd *fsd, struct fsd_inode *dir, struct fsd_text text);
/* Return: 0; -ENOENT; -ENOTDIR; -ENOTEMPTY. */
int fsd_dir_rmdir(struct fsd *fsd, struct fsd_inode *dir, struct fsd_text text);

/**
 * fsd_dir_rename() - rename(2)
 * @flags: 0, RENAME_NOREPLACE or RENAME_EXCHANGE
 *
 * Return: 0; -ENOENT; -EEXIST; -EISDIR; -ENOTDIR; -ENOTEMPTY; -EINVAL into itself, or the flags;
 * -EMLINK; -ENOSPC; -ENOMEM. Nothing has changed then.
 */
int fsd_dir_rename(struct fsd *fsd, struct fsd_inode *from, struct fsd_text old,
		   struct fsd_inode *to, struct fsd_text new, uint32_t flags);

/**
 * fsd_dir_read() - list names
 * @cookie: 0, or that of the last name seen
 * @out, @room: receives struct wire_fs_dirent and names
 *
 * Return: bytes written; 0: the end.
 */
size_t fsd_dir_read(const struct fsd_inode *dir, uint64_t cookie, void *out, size_t room);

#endif
