// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hook.h"

#define MEMFD HOOK_TAG "memory" /* before the path in a memfd's name */
#define DELETED " (deleted)"

_Static_assert(sizeof(MEMFD) == sizeof(HOOK_TEMPLATE), "hook_path() skips as many bytes");

static bool has_prefix(const char *path, const char *prefix)
{
	return !strncmp(path, prefix, strlen(prefix));
}

bool hook_may_be_inside(const char *path)
{
	return has_prefix(path, "/sys/") || has_prefix(path, "/dev/infiniband");
}

bool hook_path(int fd, char *path, size_t size)
{
	char link[32] = "/proc/self/cwd", *tag;
	ssize_t n;

	if (fd != AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	tag = strstr(path, HOOK_TAG);
	if (tag && n > (ssize_t)strlen(DELETED) && !strcmp(path + n - strlen(DELETED), DELETED)) {
		path[n - strlen(DELETED)] = '\0';
		if (strlen(tag) > strlen(HOOK_TEMPLATE))
			memmove(path, tag + strlen(HOOK_TEMPLATE),
				strlen(tag + strlen(HOOK_TEMPLATE)) + 1);
	}
	return true;
}

/* As sysfs_find(), also with a relative @path; "." is relative, too. */
static bool find_from(int dirfd, const char *path, bool follow, struct sysfs_node *node)
{
	char whole[PATH_MAX];
	size_t n;

	if (*path == '/')
		return hook_may_be_inside(path) && sysfs_find(path, follow, node);
	if (!*path || !hook_path(dirfd, whole, sizeof(whole)))
		return false;
	n = strlen(whole);
	return snprintf(whole + n, sizeof(whole) - n, "/%s", path) < (int)(sizeof(whole) - n) &&
	       hook_may_be_inside(whole) && sysfs_find(whole, follow, node);
}

bool hook_missed(int dirfd, const char *path, bool follow, struct sysfs_node *node)
{
	int saved = errno;
	bool found = (saved == ENOENT || saved == ENOTDIR) && find_from(dirfd, path, follow, node);

	errno = saved;
	return found;
}

bool hook_shadows(const char *path, struct sysfs_node *node)
{
	return find_from(AT_FDCWD, path, true, node) && node->kind == SYSFS_DIRECTORY;
}

bool hook_descriptor(int fd, struct sysfs_node *node)
{
	char path[PATH_MAX];
	int saved = errno;
	bool found = hook_path(fd, path, sizeof(path)) && hook_may_be_inside(path) &&
		     sysfs_find(path, false, node);

	errno = saved;
	return found;
}

/* Returns 0, or the errno with which the kernel would refuse @flags. */
static int check_flags(const struct sysfs_node *node, int flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;

	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return EEXIST;
	if (flags & O_DIRECTORY && node->kind != SYSFS_DIRECTORY)
		return ENOTDIR;
	if (flags & O_PATH)
		return 0;
	if (node->kind == SYSFS_LINK)
		return ELOOP;
	if (node->kind == SYSFS_NODE)
		return ENXIO;
	if (writes || flags & O_CREAT)
		return node->kind == SYSFS_DIRECTORY ? EISDIR : EACCES;
	return 0;
}

static int make_memfd(const struct sysfs_node *node, int flags, const char *text, size_t size)
{
	const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
	char name[SYSFS_PATH_MAX + sizeof(MEMFD)];
	int fd;

	snprintf(name, sizeof(name), MEMFD "%s", node->path);
	fd = memfd_create(name, MFD_ALLOW_SEALING | (flags & O_CLOEXEC ? MFD_CLOEXEC : 0));
	if (fd < 0)
		return -1;
	if (write(fd, text, size) == (ssize_t)size && !fcntl(fd, F_ADD_SEALS, seals) &&
	    !lseek(fd, 0, SEEK_SET))
		return fd;
	close(fd);
	errno = ENOMEM;
	return -1;
}

int hook_open(const struct sysfs_node *node, int flags)
{
	char text[SYSFS_TEXT_MAX];
	int size = 0, refused = check_flags(node, flags);

	if (!refused && node->kind == SYSFS_FILE) {
		size = sysfs_read(node, text);
		refused = size < 0 ? -size : 0;
	}
	if (!refused)
		return make_memfd(node, flags, text, size);
	errno = refused;
	return -1;
}
