/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The directories of an import, which get their modes and times at the end. A mode may forbid to
 * create files within, and files created within change the times.
 */
#ifndef WEIR_APPS_FS_ARCHIVE_DIRECTORIES_H
#define WEIR_APPS_FS_ARCHIVE_DIRECTORIES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct archive_entry;

struct directory {
	char *path;
	mode_t mode;
	struct timespec times[2]; /* of access, of modification */
};

/* All zero: none. */
struct directories {
	struct directory *list;
	size_t nr, room;
};

/*
 * Notes mode and times of the entry of a directory, and adds its owner's permissions to the entry.
 * Return: 0 or -ENOMEM.
 */
int directories_add(struct directories *directories, struct archive_entry *entry);

/* Sets modes and times, below the current directory. Return: failures, after a message each. */
uint64_t directories_finish(const struct directories *directories, const char *cmd);

void directories_free(struct directories *directories);

#endif
