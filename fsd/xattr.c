/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "fsd/inode.h"
#include "fsd/xattr.h"

static struct fsd_xattr *find_xattr(const struct fsd_inode *inode, struct fsd_text name)
{
	struct fsd_xattr *x;

	TAILQ_FOREACH(x, &inode->xattrs, entry) {
		if (x->name_length == name.length && !memcmp(x->text, name.at, name.length))
			break;
	}
	return x;
}

uint64_t fsd_xattr_cost(const struct fsd_xattr *x)
{
	return sizeof(*x) + x->name_length + x->value_length;
}

static void free_xattr(struct fsd *fsd, struct fsd_inode *inode, struct fsd_xattr *x)
{
	TAILQ_REMOVE(&inode->xattrs, x, entry);
	fsd_uncharge(fsd, fsd_xattr_cost(x));
	free(x);
}

static size_t list_bytes(const struct fsd_inode *inode)
{
	const struct fsd_xattr *x;
	size_t bytes = 0;

	TAILQ_FOREACH(x, &inode->xattrs, entry)
		bytes += x->name_length + 1;
	return bytes;
}

static int check_namespace(struct fsd_text name)
{
	static const char *const spaces[] = { "user.", "trusted.", "security." };

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		size_t length = strlen(spaces[i]);

		if (name.length >= length && !memcmp(name.at, spaces[i], length))
			return name.length > length ? 0 : -EINVAL;
	}
	return -EOPNOTSUPP;
}

static int check_xattr(const struct fsd_inode *inode, const struct fsd_xattr *old,
		       struct fsd_text name, struct fsd_text value, uint32_t flags)
{
	int rc = check_namespace(name);

	if (rc)
		return rc;
	if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	if (value.length > FS_XATTR_MAX)
		return -E2BIG;
	if (old && flags & XATTR_CREATE)
		return -EEXIST;
	if (!old && flags & XATTR_REPLACE)
		return -ENODATA;
	if (!old && list_bytes(inode) + name.length + 1 > FS_XATTR_MAX)
		return -ENOSPC;
	return 0;
}

int fsd_xattr_set(struct fsd *fsd, struct fsd_inode *inode, struct fsd_text name,
		  struct fsd_text value, uint32_t flags)
{
	struct fsd_xattr *old = find_xattr(inode, name), *new;
	uint64_t bytes = sizeof(*new) + name.length + value.length;
	int rc = check_xattr(inode, old, name, value, flags);

	if (!rc)
		rc = fsd_charge(fsd, bytes);
	if (rc)
		return rc;
	new = malloc(bytes);
	if (!new) {
		fsd_uncharge(fsd, bytes);
		return -ENOMEM;
	}
	new->name_length = name.length;
	new->value_length = value.length;
	memcpy(new->text, name.at, name.length);
	memcpy(new->text + name.length, value.at, value.length);
	TAILQ_INSERT_TAIL(&inode->xattrs, new, entry);
	if (old)
		free_xattr(fsd, inode, old);
	fsd_inode_stamp(fsd, inode);
	return 0;
}

int fsd_xattr_get(const struct fsd_inode *inode, struct fsd_text name, struct fsd_text *value)
{
	const struct fsd_xattr *x = find_xattr(inode, name);

	if (!x)
		return -ENODATA;
	*value = (struct fsd_text){ x->text + x->name_length, x->value_length };
	return 0;
}

size_t fsd_xattr_list(const struct fsd_inode *inode, char *out)
{
	const struct fsd_xattr *x;
	size_t bytes = 0;

	TAILQ_FOREACH(x, &inode->xattrs, entry) {
		memcpy(out + bytes, x->text, x->name_length);
		bytes += x->name_length;
		out[bytes++] = 0;
	}
	return bytes;
}

int fsd_xattr_remove(struct fsd *fsd, struct fsd_inode *inode, struct fsd_text name)
{
	struct fsd_xattr *x = find_xattr(inode, name);

	if (!x)
		return -ENODATA;
	free_xattr(fsd, inode, x);
	fsd_inode_stamp(fsd, inode);
	return 0;
}

void fsd_xattr_drop_all(struct fsd *fsd, struct fsd_inode *inode)
{
	struct fsd_xattr *x;

	while ((x = TAILQ_FIRST(&inode->xattrs)))
		free_xattr(fsd, inode, x);
}
