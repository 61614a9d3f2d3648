// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* open() and fopen() with softnic's tree. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hook.h"

int open_path(const char *path, int flags, ...) HOOK(open);
int open_path64(const char *path, int flags, ...) HOOK_ALIAS(open, open64);
int open_relative(int dirfd, const char *path, int flags, ...) HOOK(openat);
int open_relative64(int dirfd, const char *path, int flags, ...) HOOK_ALIAS(openat, openat64);
FILE *open_stream(const char *path, const char *mode) HOOK(fopen);
FILE *open_stream64(const char *path, const char *mode) HOOK_ALIAS(fopen, fopen64);

/* Of programs built with _FORTIFY_SOURCE; no mode, because the flags create nothing. */
int open_checked(const char *path, int flags) HOOK(__open_2);
int open_checked64(const char *path, int flags) HOOK_ALIAS(__open_2, __open64_2);
int open_relative_checked(int dirfd, const char *path, int flags) HOOK(__openat_2);
int open_relative_checked64(int dirfd, const char *path, int flags)
	HOOK_ALIAS(__openat_2, __openat64_2);

static int open_missed(int dirfd, const char *path, int flags)
{
	struct sysfs_node node;

	if (!hook_missed(dirfd, path, !(flags & O_NOFOLLOW), &node))
		return -1;
	if (node.kind == SYSFS_ELSEWHERE)
		return HOOK_NEXT(openat)(AT_FDCWD, node.path, flags & ~O_CREAT);
	return hook_open(&node, flags);
}

/*
 * After the kernel's success. Under `weir run --sysfs=mount` the kernel has copies of the tree's
 * files; the tree has the present contents.
 */
static int open_fresh(int fd, const char *path, int flags)
{
	struct sysfs_node node;

	if (!hook_may_be_inside(path) || !sysfs_find(path, true, &node) || node.kind != SYSFS_FILE)
		return fd;
	close(fd);
	return hook_open(&node, flags);
}

static int open_absolute(int fd, const char *path, int flags)
{
	return fd < 0 ? open_missed(AT_FDCWD, path, flags) : open_fresh(fd, path, flags);
}

static bool has_mode(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

int open_path(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list list;
	int fd;

	va_start(list, flags);
	if (has_mode(flags))
		mode = va_arg(list, mode_t);
	va_end(list);
	fd = HOOK_NEXT(open)(path, flags, mode);
	return open_absolute(fd, path, flags);
}

int open_relative(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list list;
	int fd;

	va_start(list, flags);
	if (has_mode(flags))
		mode = va_arg(list, mode_t);
	va_end(list);
	fd = HOOK_NEXT(openat)(dirfd, path, flags, mode);
	return fd < 0 ? open_missed(dirfd, path, flags) : open_fresh(fd, path, flags);
}

int open_checked(const char *path, int flags)
{
	return open_absolute(HOOK_NEXT(open)(path, flags), path, flags);
}

int open_relative_checked(int dirfd, const char *path, int flags)
{
	int fd = HOOK_NEXT(openat)(dirfd, path, flags);

	return fd < 0 ? open_missed(dirfd, path, flags) : open_fresh(fd, path, flags);
}

/* The flags of open() that check the mode of fopen(); creating would change no node. */
static int mode_flags(const char *mode)
{
	int access = *mode == 'r' && !strchr(mode, '+') ? O_RDONLY : O_RDWR;

	return access | (strchr(mode, 'e') ? O_CLOEXEC : 0);
}

FILE *open_stream(const char *path, const char *mode)
{
	FILE *stream = HOOK_NEXT(fopen)(path, mode);
	struct sysfs_node node;
	int fd;

	if (stream) {
		if (!hook_may_be_inside(path) || !sysfs_find(path, true, &node) ||
		    node.kind != SYSFS_FILE)
			return stream;
		fclose(stream);
	} else if (!hook_missed(AT_FDCWD, path, true, &node)) {
		return NULL;
	} else if (node.kind == SYSFS_ELSEWHERE) {
		return HOOK_NEXT(fopen)(node.path, mode);
	}
	fd = hook_open(&node, mode_flags(mode));
	stream = fd < 0 ? NULL : fdopen(fd, "r");
	if (!stream && fd >= 0)
		close(fd);
	return stream;
}
