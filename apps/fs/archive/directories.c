/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/fs/archive/directories.h"
#include "apps/common/cmd.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int make_room(struct directories *d)
{
	size_t room = d->room ? 2 * d->room : 64;
	struct directory *list;

	if (d->nr < d->room)
		return 0;
	list = realloc(d->list, room * sizeof(*list));
	if (!list)
		return -ENOMEM;
	d->list = list;
	d->room = room;
	return 0;
}

static struct timespec time_of(int is_set, time_t seconds, long nanoseconds)
{
	return (struct timespec){
		.tv_sec = is_set ? seconds : 0,
		.tv_nsec = is_set ? nanoseconds : UTIME_OMIT,
	};
}

int directories_add(struct directories *d, struct archive_entry *entry)
{
	struct directory one = { .path = strdup(archive_entry_pathname(entry)) };

	if (!one.path || make_room(d)) {
		free(one.path);
		return -ENOMEM;
	}
	one.mode = archive_entry_perm(entry);
	one.times[0] = time_of(archive_entry_atime_is_set(entry), archive_entry_atime(entry),
			       archive_entry_atime_nsec(entry));
	one.times[1] = time_of(archive_entry_mtime_is_set(entry), archive_entry_mtime(entry),
			       archive_entry_mtime_nsec(entry));
	archive_entry_set_perm(entry, one.mode | S_IRWXU);
	d->list[d->nr++] = one;
	return 0;
}

/* A later entry may have put a symbolic link in place of a directory. */
static int open_below(const char *path)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* Return: 0 or a negative errno. */
static int finish_one(const struct directory *one)
{
	int fd = open_below(one->path), rc = 0;

	if (fd < 0)
		return -errno;
	if (fchmod(fd, one->mode) || futimens(fd, one->times))
		rc = -errno;
	close(fd);
	return rc;
}

uint64_t directories_finish(const struct directories *d, const char *cmd)
{
	uint64_t failures = 0;

	/* Those below first: the modes of those above may forbid the way. */
	for (size_t i = d->nr; i--;) {
		int rc = finish_one(&d->list[i]);

		if (!rc)
			continue;
		failures++;
		failure(cmd, "%s: mode and times of the directory: %s", d->list[i].path,
			strerror(-rc));
	}
	return failures;
}

void directories_free(struct directories *d)
{
	for (size_t i = 0; i < d->nr; i++)
		free(d->list[i].path);
	free(d->list);
}
