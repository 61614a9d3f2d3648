// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* readlink() and realpath() with softnic's tree. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hook.h"

ssize_t link_read(const char *path, char *target, size_t size) HOOK(readlink);
ssize_t link_read_relative(int dirfd, const char *path, char *target, size_t size) HOOK(readlinkat);
char *link_resolve(const char *path, char *resolved) HOOK(realpath);
char *link_canonicalize(const char *path) HOOK(canonicalize_file_name);

/* Of programs built with _FORTIFY_SOURCE. */
ssize_t link_read_checked(const char *path, char *target, size_t size, size_t room)
	HOOK(__readlink_chk);
ssize_t link_read_relative_checked(int dirfd, const char *path, char *target, size_t size,
				   size_t room) HOOK(__readlinkat_chk);
char *link_resolve_checked(const char *path, char *resolved, size_t room) HOOK(__realpath_chk);

static ssize_t read_missed(int dirfd, const char *path, char *target, size_t size)
{
	char text[SYSFS_TEXT_MAX];
	struct sysfs_node node;
	int n;

	if (!hook_missed(dirfd, path, false, &node))
		return -1;
	if (node.kind == SYSFS_ELSEWHERE)
		return HOOK_NEXT(readlink)(node.path, target, size);
	n = node.kind == SYSFS_LINK ? sysfs_read(&node, text) : -EINVAL;
	if (n < 0) {
		errno = -n;
		return -1;
	}
	if ((size_t)n > size)
		n = size;
	memcpy(target, text, n);
	return n;
}

ssize_t link_read(const char *path, char *target, size_t size)
{
	ssize_t n = HOOK_NEXT(readlink)(path, target, size);

	return n < 0 ? read_missed(AT_FDCWD, path, target, size) : n;
}

ssize_t link_read_relative(int dirfd, const char *path, char *target, size_t size)
{
	ssize_t n = HOOK_NEXT(readlinkat)(dirfd, path, target, size);

	return n < 0 ? read_missed(dirfd, path, target, size) : n;
}

ssize_t link_read_checked(const char *path, char *target, size_t size, size_t room)
{
	if (size > room)
		abort(); /* an overflow */
	return link_read(path, target, size);
}

ssize_t link_read_relative_checked(int dirfd, const char *path, char *target, size_t size,
				   size_t room)
{
	if (size > room)
		abort();
	return link_read_relative(dirfd, path, target, size);
}

char *link_resolve(const char *path, char *resolved)
{
	char *found = HOOK_NEXT(realpath)(path, resolved);
	struct sysfs_node node;

	if (found || !path || !hook_missed(AT_FDCWD, path, true, &node))
		return found;
	if (node.kind == SYSFS_ELSEWHERE)
		return HOOK_NEXT(realpath)(node.path, resolved);
	return resolved ? strcpy(resolved, node.path) : strdup(node.path);
}

char *link_canonicalize(const char *path)
{
	return link_resolve(path, NULL);
}

char *link_resolve_checked(const char *path, char *resolved, size_t room)
{
	if (resolved && room < PATH_MAX)
		abort();
	return link_resolve(path, resolved);
}
