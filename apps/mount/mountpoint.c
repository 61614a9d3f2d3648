/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/mountpoint.h"

#include <dirent.h>
#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/cmd.h"

bool mountpoint_is_mounted(const char *absolute)
{
	FILE *table = setmntent("/proc/self/mounts", "r");
	const struct mntent *entry;
	bool found = false;

	while (table && !found && (entry = getmntent(table)))
		found = !strcmp(entry->mnt_dir, absolute) && !strcmp(entry->mnt_type, "fuse.weir");
	if (table)
		endmntent(table);
	return found;
}

/* Decodes the table's octal escapes for spaces, tabs, newlines and backslashes. */
static void unescape(char *path)
{
	char *to = path;

	for (; *path; path++) {
		if (path[0] == '\\' && path[1] && path[2] && path[3]) {
			*to++ = (char)((path[1] - '0') << 6 | (path[2] - '0') << 3 |
				       (path[3] - '0'));
			path += 3;
		} else {
			*to++ = *path;
		}
	}
	*to = '\0';
}

bool mountpoint_device(const char *absolute, unsigned int *major, unsigned int *minor)
{
	FILE *table = fopen("/proc/self/mountinfo", "r");
	unsigned int ma, mi;
	char *line = NULL, *path;
	bool found = false;
	size_t size = 0;

	while (table && getline(&line, &size, table) > 0) {
		if (sscanf(line, "%*u %*u %u:%u %*s %ms", &ma, &mi, &path) != 3)
			continue;
		unescape(path);
		if (!strcmp(path, absolute)) {
			*major = ma; /* the last mount on a path is on top */
			*minor = mi;
			found = true;
		}
		free(path);
	}
	free(line);
	if (table)
		fclose(table);
	return found;
}

static int unusable(const char *cmd, const char *path, int rc)
{
	if (rc == ENOTCONN)
		return failure(cmd, "%s: a mount whose process is gone; free it with: umount %s",
			       path, path);
	return failure(cmd, "%s: %s%s", path, strerror(rc),
		       rc == ENOENT ? "; create it with mkdir" : "");
}

static bool is_entry(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
}

int mountpoint_check(const char *cmd, const char *path, char *absolute)
{
	const struct dirent *entry;
	DIR *dir;

	if (!realpath(path, absolute))
		return unusable(cmd, path, errno);
	if (mountpoint_is_mounted(absolute))
		return failure(cmd, "weir is mounted on %s already; to unmount: umount %s", path,
			       path);
	dir = opendir(absolute);
	if (!dir)
		return unusable(cmd, path, errno);
	do {
		entry = readdir(dir);
	} while (entry && !is_entry(entry));
	closedir(dir);
	if (entry)
		return failure(cmd, "%s is not empty: mount on an empty directory", path);
	return EXIT_OK;
}
