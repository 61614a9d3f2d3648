// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The device node /dev/infiniband/softnicN, which does not exist.
 *
 * UCX ignores a device unless its node is a readable and writable character device, but never
 * opens the node. So stat() and access() report such a node when the kernel finds nothing. The
 * kernel is asked first, because only the kernel can detect an invalid path.
 */
#include <errno.h>
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

/* Is @path a device node, after the kernel returned @rc? If not, errno is unchanged. */
static bool is_node(const char *path, int rc)
{
	bool found;

	if (!rc || errno != ENOENT || strncmp(path, NODES, strlen(NODES)))
		return false;
	found = is_device(path + strlen(NODES));
	errno = ENOENT;
	return found;
}

/* Both names in the C library; its header maps stat() to one of the two. */
#define EXPORTED __attribute__((visibility("default")))
EXPORTED int node_stat(const char *path, struct stat *st) __asm__("stat");
EXPORTED int node_stat64(const char *path, struct stat *st) __asm__("stat64")
	__attribute__((alias("stat")));

/* For programs built before glibc 2.33, such as binaries in Python wheels. */
EXPORTED int node_xstat(int version, const char *path, struct stat *st) __asm__("__xstat");
EXPORTED int node_xstat64(int version, const char *path, struct stat *st) __asm__("__xstat64")
	__attribute__((alias("__xstat")));

EXPORTED int access(const char *path, int mode)
{
	int rc = faccessat(AT_FDCWD, path, mode, 0);

	return is_node(path, rc) ? 0 : rc;
}

int node_stat(const char *path, struct stat *st)
{
	int rc = fstatat(AT_FDCWD, path, st, 0);

	if (!is_node(path, rc))
		return rc;
	*st = (struct stat){ .st_mode = S_IFCHR | 0666, .st_nlink = 1 };
	return 0;
}

/* On 64-bit machines struct stat has only one version. */
int node_xstat(int version, const char *path, struct stat *st)
{
	(void)version;
	return node_stat(path, st);
}
