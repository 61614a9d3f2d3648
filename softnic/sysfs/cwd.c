// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * chdir() into softnic's tree, for shells.
 *
 * The kernel's working directory must fail each relative lookup, so that the other functions look
 * into the tree, and children must inherit it with its meaning. So it becomes a directory such as
 * /dev/shm/weir-sysfs.Xy12ab/sys/class/infiniband, which is removed at once. The kernel still shows
 * its name in /proc/self/cwd, and ".." leads to as many empty directories as there are above.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hook.h"

int cwd_change(const char *path) HOOK(chdir);
int cwd_change_fd(int fd) HOOK(fchdir);
char *cwd_get(char *path, size_t size) HOOK(getcwd);
char *cwd_get_checked(char *path, size_t size, size_t room) HOOK(__getcwd_chk);
char *cwd_get_name(void) HOOK(get_current_dir_name);

/* Makes each directory of @whole after the first @made bytes. */
static int make_nest(char *whole, size_t made)
{
	char *slash = whole + made;
	int rc;

	do {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		rc = mkdir(whole, 0700);
		if (slash)
			*slash = '/';
	} while (!rc && slash);
	return rc;
}

/* Removes @whole and the directories above, down to the first @kept bytes. */
static void remove_nest(char *whole, size_t kept)
{
	char *slash;

	while (strlen(whole) > kept) {
		rmdir(whole);
		slash = strrchr(whole, '/');
		*slash = '\0';
	}
}

static int enter_below(const char *folder, const char *path)
{
	char whole[SYSFS_PATH_MAX + PATH_MAX];
	int rc, failed;
	size_t made;

	snprintf(whole, sizeof(whole), "%.*s/" HOOK_TEMPLATE, PATH_MAX - 32, folder);
	if (!mkdtemp(whole))
		return -1;
	made = strlen(whole);
	strcpy(whole + made, path);
	rc = make_nest(whole, made);
	rc = rc ? rc : HOOK_NEXT(chdir)(whole);
	failed = errno;
	remove_nest(whole, strlen(folder));
	errno = failed;
	return rc;
}

static int enter(const struct sysfs_node *node)
{
	if (node->kind == SYSFS_ELSEWHERE)
		return HOOK_NEXT(chdir)(node->path);
	if (node->kind != SYSFS_DIRECTORY) {
		errno = ENOTDIR;
		return -1;
	}
	return enter_below("/dev/shm", node->path) && enter_below("/tmp", node->path) ? -1 : 0;
}

int cwd_change(const char *path)
{
	int rc = HOOK_NEXT(chdir)(path);
	struct sysfs_node node;

	return rc && hook_missed(AT_FDCWD, path, true, &node) ? enter(&node) : rc;
}

int cwd_change_fd(int fd)
{
	int rc = HOOK_NEXT(fchdir)(fd);
	struct sysfs_node node;

	return rc && errno == ENOTDIR && hook_descriptor(fd, &node) ? enter(&node) : rc;
}

char *cwd_get(char *path, size_t size)
{
	char *found = HOOK_NEXT(getcwd)(path, size);
	char inside[PATH_MAX];

	if (found || errno != ENOENT || !hook_path(AT_FDCWD, inside, sizeof(inside)) ||
	    !hook_may_be_inside(inside))
		return found;
	if (!path)
		return strdup(inside);
	if (strlen(inside) >= size) {
		errno = ERANGE;
		return NULL;
	}
	return strcpy(path, inside);
}

char *cwd_get_checked(char *path, size_t size, size_t room)
{
	if (size > room)
		abort(); /* an overflow */
	return cwd_get(path, size);
}

char *cwd_get_name(void)
{
	char *name = HOOK_NEXT(get_current_dir_name)();

	return name ? name : cwd_get(NULL, 0);
}
