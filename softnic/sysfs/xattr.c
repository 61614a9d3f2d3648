// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Extended attributes, which ls -l asks for: files of softnic's tree have none. */
#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>

#include "hook.h"

ssize_t xattr_get(const char *path, const char *name, void *value, size_t size) HOOK(getxattr);
ssize_t xattr_get_link(const char *path, const char *name, void *value, size_t size)
	HOOK(lgetxattr);
ssize_t xattr_list(const char *path, char *list, size_t size) HOOK(listxattr);
ssize_t xattr_list_link(const char *path, char *list, size_t size) HOOK(llistxattr);

/* After a failure with ENOENT. In the tree, the attributes are unsupported, as in sysfs. */
static void refuse(const char *path, bool follow)
{
	struct sysfs_node node;

	if (hook_missed(AT_FDCWD, path, follow, &node))
		errno = ENOTSUP;
}

ssize_t xattr_get(const char *path, const char *name, void *value, size_t size)
{
	ssize_t n = HOOK_NEXT(getxattr)(path, name, value, size);

	if (n < 0)
		refuse(path, true);
	return n;
}

ssize_t xattr_get_link(const char *path, const char *name, void *value, size_t size)
{
	ssize_t n = HOOK_NEXT(lgetxattr)(path, name, value, size);

	if (n < 0)
		refuse(path, false);
	return n;
}

ssize_t xattr_list(const char *path, char *list, size_t size)
{
	ssize_t n = HOOK_NEXT(listxattr)(path, list, size);

	if (n < 0)
		refuse(path, true);
	return n;
}

ssize_t xattr_list_link(const char *path, char *list, size_t size)
{
	ssize_t n = HOOK_NEXT(llistxattr)(path, list, size);

	if (n < 0)
		refuse(path, false);
	return n;
}
