// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The device's node, /dev/infiniband/softnicN, which is not there.
 *
 * UCX leaves out a device unless its node is a character device that may be read and written,
 * and then never opens it. So stat() and access() say so, and are themselves for every other
 * path.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs.h"

_Static_assert(sizeof(long) == 8, "struct stat is struct stat64");

#define NODES "/dev/infiniband/"

static bool is_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **d;
	bool found = false;

	for (d = list; list && *d && !found; d++)
		found = !strcmp((*d)->dev_name, name);
	ibv_free_device_list(list);
	return found;
}

static bool is_node(const char *path)
{
	return !strncmp(path, NODES, strlen(NODES)) && is_device(path + strlen(NODES));
}

/* The C library's two names for it, whichever of them its header makes of stat() here. */
#define EXPORTED __attribute__((visibility("default")))
EXPORTED int node_stat(const char *path, struct stat *st) __asm__("stat");
EXPORTED int node_stat64(const char *path, struct stat *st)
	__asm__("stat64") __attribute__((alias("stat")));

/* What a program has that was built before glibc 2.33, as those in wheels are. */
EXPORTED int node_xstat(int version, const char *path, struct stat *st) __asm__("__xstat");
EXPORTED int node_xstat64(int version, const char *path, struct stat *st)
	__asm__("__xstat64") __attribute__((alias("__xstat")));

EXPORTED int access(const char *path, int mode)
{
	return is_node(path) ? 0 : faccessat(AT_FDCWD, path, mode, 0);
}

int node_stat(const char *path, struct stat *st)
{
	if (!is_node(path))
		return fstatat(AT_FDCWD, path, st, 0);
	*st = (struct stat){ .st_mode = S_IFCHR | 0666, .st_nlink = 1 };
	return 0;
}

/* Of 64 bits, struct stat has only ever had one version. */
int node_xstat(int version, const char *path, struct stat *st)
{
	(void)version;
	return node_stat(path, st);
}
