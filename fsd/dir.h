/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Directories: names, and the operations on them.
 *
 * Callers pass names that are checked: 1 to FS_NAME_MAX bytes without '/' and NUL, neither "." nor
 * "..". Callers also check that @dir is a directory.
 */
#ifndef WEIR_FSD_DIR_H
#define WEIR_FSD_DIR_H

#include "fsd/internal.h"

struct fsd_text {
	const char *at;
	uint32_t length;
};

void fsd_dir_init(struct fsd_inode *dir, struct fsd_inode *parent);
/* Frees the memory of an empty directory. */
void fsd_dir_fini(struct fsd_inode *dir);

/* Return: the inode of this name, or NULL. */
struct fsd_inode *fsd_dir_find(const struct fsd *fsd, const struct fsd_inode *dir,
			       struct fsd_text text);

/* The charge for a name. */
uint64_t fsd_dir_name_cost(struct fsd_text text);

/**
 * fsd_dir_link() - give an inode a name in @dir
 * @text: must not exist in @dir
 *
 * Updates link counts (also of @dir if @inode is a directory) and times.
 *
 * Return: 0; -ENOENT @dir has been removed; -EMLINK; -ENOSPC; -ENOMEM.
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
 * Return: 0, or with nothing changed -ENOENT; -EEXIST; -EISDIR; -ENOTDIR; -ENOTEMPTY; -EINVAL bad
 * flags, or a directory moved into itself; -EMLINK; -ENOSPC; -ENOMEM.
 */
int fsd_dir_rename(struct fsd *fsd, struct fsd_inode *from, struct fsd_text old,
		   struct fsd_inode *to, struct fsd_text new, uint32_t flags);

/**
 * fsd_dir_read() - list names
 * @cookie: 0, or the cookie of the last name seen
 * @out: receives struct wire_fs_dirent entries with names
 * @room: bytes that fit at @out
 *
 * Return: bytes written; 0 at the end.
 */
size_t fsd_dir_read(const struct fsd_inode *dir, uint64_t cookie, void *out, size_t room);

/*
 * Adds a name of an image, with the cookie, and changes nothing else. Return: 0; -EEXIST the
 * name is there, or a name with a cookie as high; -ENOSPC; -ENOMEM.
 */
int fsd_dir_restore(struct fsd *fsd, struct fsd_inode *dir, struct fsd_text text,
		    struct fsd_inode *inode, uint64_t cookie);

#endif
