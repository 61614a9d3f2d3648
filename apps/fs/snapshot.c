/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir fs snapshot: a copy of a directory, of one moment, in the donor's memory. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/fs/fs.h"
#include "apps/fs/place.h"
#include "wire/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER ".snapshots" /* at the root of the mount */

static const char usage[] =
	"Usage: weir fs snapshot PATH NAME\n"
	"Copies the directory PATH of a mount, with all below, as it is at one moment, to NAME in\n"
	FOLDER " at the root of the mount. Programs wait meanwhile. The copy is an ordinary\n"
	"directory: export it with 'weir fs export', remove it with 'rm -r'.\n";

static const struct cmdline snapshot_line = {
	.usage = usage,
	.notes = "No other client may mount the donor. Pages that programs changed in shared\n"
		 "mappings are copied only after msync(2).\n",
	.arguments = "PATH NAME",
	.arguments_min = 2,
	.arguments_max = 2,
};

static const char *reason(int error)
{
	switch (error) {
	case EBUSY:
		return "another client mounts the donor, or transfers did not end within seconds: "
		       "stop what writes and use 'weir fs export'";
	case EAGAIN:
		return "the donor removes an earlier one that failed: try again";
	case ETIMEDOUT:
		return "it takes longer than three quarters of the mount's --timeout, for which "
		       "programs may wait";
	case EFBIG:
		return "it is too large: at most 2 GiB and 500,000 names";
	case EPERM:
		return "only root and the mount's user may take one";
	case EOPNOTSUPP:
	case ENOTTY:
		return "a sealed mount, one of a pool, and a donor of an earlier version have none";
	default:
		return strerror(error);
	}
}

/* Return: 0 or an errno. */
static int take(const char *path, const char *folder, const char *name)
{
	struct wire_files_snapshot wanted = { .parent = 0 };
	int fd, rc = 0;
	struct stat st;

	if (mkdir(folder, 0700) && errno != EEXIST)
		return errno;
	if (lstat(folder, &st))
		return errno;
	if (!S_ISDIR(st.st_mode))
		return ENOTDIR;
	wanted.parent = st.st_ino;
	strcpy(wanted.name, name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (ioctl(fd, FILES_SNAPSHOT, &wanted))
		rc = errno;
	close(fd);
	return rc;
}

int fs_snapshot(const char *cmd, int argc, char **argv)
{
	int status = cmdline_parse(&snapshot_line, argc, argv, NULL), rc;
	char folder[PATH_MAX + sizeof(FOLDER) + 1];
	struct fs_place place;
	const char *name;

	if (status != CMDLINE_PARSED)
		return status;
	name = argv[optind + 1];
	if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") ||
	    strlen(name) >= sizeof(((struct wire_files_snapshot *)0)->name))
		return usage_error(cmd, "NAME '%s' is no name of a directory", name);
	status = place_find(cmd, argv[optind], &place);
	if (status)
		return status;
	snprintf(folder, sizeof(folder), "%s/" FOLDER, place.mountpoint);
	rc = take(place.path, folder, name);
	if (rc == EEXIST)
		return failure(cmd, "%s/%s exists", folder, name);
	if (rc)
		return failure(cmd, "cannot take a snapshot of %s: %s", place.path, reason(rc));
	printf("%s/%s\n", folder, name);
	return EXIT_OK;
}
