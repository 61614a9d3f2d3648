/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/fs/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

int folder_sync(const char *name)
{
	char path[PATH_MAX];
	int fd, rc = 0;

	snprintf(path, sizeof(path), "%s", name);
	fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fsync(fd) && errno != EINVAL) /* some file systems sync no folders */
		rc = -errno;
	close(fd);
	return rc;
}
