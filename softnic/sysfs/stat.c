// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* The functions of stat() and access() with softnic's tree. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook.h"

int stat_path(const char *path, struct stat *st) HOOK(stat);
int stat_path64(const char *path, struct stat *st) HOOK_ALIAS(stat, stat64);
int stat_link(const char *path, struct stat *st) HOOK(lstat);
int stat_link64(const char *path, struct stat *st) HOOK_ALIAS(lstat, lstat64);
int stat_fd(int fd, struct stat *st) HOOK(fstat);
int stat_fd64(int fd, struct stat *st) HOOK_ALIAS(fstat, fstat64);
int stat_relative(int dirfd, const char *path, struct stat *st, int flags) HOOK(fstatat);
int stat_relative64(int dirfd, const char *path, struct stat *st, int flags)
	HOOK_ALIAS(fstatat, fstatat64);
int stat_extended(int dirfd, const char *path, int flags, unsigned int mask, struct statx *stx)
	HOOK(statx);

/* Of programs built before glibc 2.33. On 64-bit machines struct stat has only one version. */
int stat_old_path(int version, const char *path, struct stat *st) HOOK(__xstat);
int stat_old_path64(int version, const char *path, struct stat *st) HOOK_ALIAS(__xstat, __xstat64);
int stat_old_link(int version, const char *path, struct stat *st) HOOK(__lxstat);
int stat_old_link64(int version, const char *path, struct stat *st)
	HOOK_ALIAS(__lxstat, __lxstat64);
int stat_old_fd(int version, int fd, struct stat *st) HOOK(__fxstat);
int stat_old_fd64(int version, int fd, struct stat *st) HOOK_ALIAS(__fxstat, __fxstat64);
int stat_old_relative(int version, int dirfd, const char *path, struct stat *st, int flags)
	HOOK(__fxstatat);
int stat_old_relative64(int version, int dirfd, const char *path, struct stat *st, int flags)
	HOOK_ALIAS(__fxstatat, __fxstatat64);

int stat_access(const char *path, int mode) HOOK(access);
int stat_access_relative(int dirfd, const char *path, int mode, int flags) HOOK(faccessat);
int stat_access_effective(const char *path, int mode) HOOK(eaccess);
int stat_access_effective_user(const char *path, int mode) HOOK_ALIAS(eaccess, euidaccess);

static const mode_t modes[] = {
	[SYSFS_DIRECTORY] = S_IFDIR | 0555,
	[SYSFS_FILE] = S_IFREG | 0444,
	[SYSFS_LINK] = S_IFLNK | 0777,
	[SYSFS_NODE] = S_IFCHR | 0666,
};

static void fill(const struct sysfs_node *node, struct stat *st)
{
	*st = (struct stat){
		.st_ino = sysfs_inode(node->path),
		.st_mode = modes[node->kind],
		.st_nlink = node->kind == SYSFS_DIRECTORY ? 2 : 1,
		.st_size = node->kind == SYSFS_FILE ? SYSFS_TEXT_MAX : 0,
		.st_blksize = SYSFS_TEXT_MAX,
	};
}

static void fill_extended(const struct sysfs_node *node, struct statx *stx)
{
	struct stat st;

	fill(node, &st);
	*stx = (struct statx){
		.stx_mask = STATX_BASIC_STATS,
		.stx_ino = st.st_ino,
		.stx_mode = st.st_mode,
		.stx_nlink = st.st_nlink,
		.stx_size = st.st_size,
		.stx_blksize = st.st_blksize,
	};
}

static bool follows(int flags)
{
	return !(flags & AT_SYMLINK_NOFOLLOW);
}

static int stat_missed(int dirfd, const char *path, struct stat *st, int flags)
{
	struct sysfs_node node;

	if (!hook_missed(dirfd, path, follows(flags), &node))
		return -1;
	if (node.kind == SYSFS_ELSEWHERE)
		return HOOK_NEXT(fstatat)(AT_FDCWD, node.path, st, flags);
	fill(&node, st);
	return 0;
}

/* A memfd has no name in a directory, so few descriptors need a closer look. */
static bool is_memfd(mode_t mode, unsigned long links)
{
	return S_ISREG(mode) && !links;
}

static void refill(int fd, struct stat *st)
{
	struct sysfs_node node;

	if (is_memfd(st->st_mode, st->st_nlink) && hook_descriptor(fd, &node))
		fill(&node, st);
}

int stat_path(const char *path, struct stat *st)
{
	int rc = HOOK_NEXT(stat)(path, st);

	return rc ? stat_missed(AT_FDCWD, path, st, 0) : 0;
}

int stat_link(const char *path, struct stat *st)
{
	int rc = HOOK_NEXT(lstat)(path, st);

	return rc ? stat_missed(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW) : 0;
}

int stat_fd(int fd, struct stat *st)
{
	int rc = HOOK_NEXT(fstat)(fd, st);

	if (!rc)
		refill(fd, st);
	return rc;
}

int stat_relative(int dirfd, const char *path, struct stat *st, int flags)
{
	int rc = HOOK_NEXT(fstatat)(dirfd, path, st, flags);

	if (rc)
		return stat_missed(dirfd, path, st, flags);
	if (flags & AT_EMPTY_PATH && !*path)
		refill(dirfd, st);
	return 0;
}

int stat_extended(int dirfd, const char *path, int flags, unsigned int mask, struct statx *stx)
{
	int rc = HOOK_NEXT(statx)(dirfd, path, flags, mask, stx);
	struct sysfs_node node;

	if (!rc) {
		if (flags & AT_EMPTY_PATH && is_memfd(stx->stx_mode, stx->stx_nlink) &&
		    (!path || !*path) && hook_descriptor(dirfd, &node))
			fill_extended(&node, stx);
		return 0;
	}
	if (!hook_missed(dirfd, path, follows(flags), &node))
		return rc;
	if (node.kind == SYSFS_ELSEWHERE)
		return HOOK_NEXT(statx)(AT_FDCWD, node.path, flags, mask, stx);
	fill_extended(&node, stx);
	return 0;
}

int stat_old_path(int version, const char *path, struct stat *st)
{
	(void)version;
	return stat_path(path, st);
}

int stat_old_link(int version, const char *path, struct stat *st)
{
	(void)version;
	return stat_link(path, st);
}

int stat_old_fd(int version, int fd, struct stat *st)
{
	(void)version;
	return stat_fd(fd, st);
}

int stat_old_relative(int version, int dirfd, const char *path, struct stat *st, int flags)
{
	(void)version;
	return stat_relative(dirfd, path, st, flags);
}

/* Nobody may write a file of the tree, root included, as in the kernel's. */
static int access_missed(int dirfd, const char *path, int mode, int flags)
{
	struct sysfs_node node;

	if (!hook_missed(dirfd, path, follows(flags), &node))
		return -1;
	if (node.kind == SYSFS_ELSEWHERE)
		return HOOK_NEXT(faccessat)(AT_FDCWD, node.path, mode, flags);
	if ((mode & W_OK && !(modes[node.kind] & S_IWUSR)) ||
	    (mode & X_OK && !(modes[node.kind] & S_IXUSR))) {
		errno = EACCES;
		return -1;
	}
	return 0;
}

int stat_access(const char *path, int mode)
{
	int rc = HOOK_NEXT(access)(path, mode);

	return rc ? access_missed(AT_FDCWD, path, mode, 0) : 0;
}

int stat_access_relative(int dirfd, const char *path, int mode, int flags)
{
	int rc = HOOK_NEXT(faccessat)(dirfd, path, mode, flags);

	return rc ? access_missed(dirfd, path, mode, flags) : 0;
}

int stat_access_effective(const char *path, int mode)
{
	int rc = HOOK_NEXT(eaccess)(path, mode);

	return rc ? access_missed(AT_FDCWD, path, mode, AT_EACCESS) : 0;
}
