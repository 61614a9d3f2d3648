/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Extended attributes. Names are up to FS_NAME_MAX bytes without NUL, in the namespaces user,
 * trusted and security. Names in "system." are refused: the server does not enforce access lists,
 * so it does not store them.
 */
#ifndef WEIR_FSD_XATTR_H
#define WEIR_FSD_XATTR_H

#include "fsd/dir.h"
#include "fsd/internal.h"

struct fsd_xattr {
	TAILQ_ENTRY(fsd_xattr) entry;
	uint32_t name_length, value_length;
	char text[]; /* name, then value */
};

/* The charge for an attribute. */
uint64_t fsd_xattr_cost(const struct fsd_xattr *x);

/*
 * @flags: 0, XATTR_CREATE or XATTR_REPLACE. Return: 0; -EEXIST; -ENODATA; -E2BIG; -ENOSPC;
 * -EOPNOTSUPP; -EINVAL; -ENOMEM.
 */
int fsd_xattr_set(struct fsd *fsd, struct fsd_inode *inode, struct fsd_text name,
		  struct fsd_text value, uint32_t flags);

/* @value stays valid until the attribute changes. Return: 0; -ENODATA. */
int fsd_xattr_get(const struct fsd_inode *inode, struct fsd_text name, struct fsd_text *value);

/* Writes the names, each with a NUL, FS_XATTR_MAX bytes at most. Return: bytes written. */
size_t fsd_xattr_list(const struct fsd_inode *inode, char *out);

/* Return: 0; -ENODATA. */
int fsd_xattr_remove(struct fsd *fsd, struct fsd_inode *inode, struct fsd_text name);

void fsd_xattr_drop_all(struct fsd *fsd, struct fsd_inode *inode);

#endif
