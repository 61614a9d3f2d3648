/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file that an export writes, with the index beside it that lets a later run go on.
 *
 * While the export runs, FILE.part has the archive so far and FILE.part.index a line for each
 * entry. The index tells of no entry before the bytes are on the disk. At the end the archive
 * gets the name FILE, and the index is removed.
 *
 * A line of the index: the end of the entry in the archive, the file's inode number, size and
 * ctime (seconds, nanoseconds), then a line of sums.h.
 */
#ifndef WEIR_APPS_FS_ARCHIVE_OUTPUT_H
#define WEIR_APPS_FS_ARCHIVE_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "apps/fs/archive/sums.h"

/* An entry of the archive, as the index has it. */
struct output_entry {
	uint64_t end, ino, size;
	int64_t ctime_s, ctime_ns;
};

/**
 * struct output - an archive that is written
 * @name: FILE, or "-": standard output, without an index
 * @at: bytes of the archive so far
 * @held: bytes of @buffer, not written yet
 * @error: a negative errno of an earlier write; nothing more is written
 * @pending, @text, @text_length: lines of the index that are not on the disk yet
 * @sums, @entries: of the index, one for each entry of the archive
 */
struct output {
	const char *cmd, *name;
	char part[PATH_MAX], index_name[PATH_MAX];
	int fd, error;
	uint64_t at;
	size_t held;
	char *buffer;
	FILE *index, *pending;
	char *text;
	size_t text_length;
	uint64_t saved_ns;
	struct sums sums;
	struct output_entry *entries;
	size_t room;
};

/**
 * output_open() - begin an archive, or go on with one
 * @tree: the directory that is exported; an unfinished archive of another is refused
 * @overwrite: replace a FILE that is there
 * @restart: drop an unfinished archive
 *
 * The caller owes an output_close(), also after a failure.
 *
 * Return: 0, or an exit status after a message.
 */
int output_open(struct output *output, const char *name, const char *tree, bool overwrite,
		bool restart);

/* Whether entries can be taken back, and the export can be resumed. */
static inline bool output_is_file(const struct output *output)
{
	return output->index;
}

/* Return: 0 or a negative errno. */
int output_write(struct output *output, const void *bytes, size_t length);
/* Drops what has been written after @at. Only if output_is_file(). Return: 0 or -errno. */
int output_rewind(struct output *output, uint64_t at);
/* Notes an entry that ends here. @digest: NULL: without bytes. Return: 0 or -errno. */
int output_note(struct output *output, const char *path, const struct stat *st,
		const uint8_t *digest);
/* Brings archive and index to the disk. Return: 0 or -errno. */
int output_save(struct output *output);
/* Gives the archive its name. Return: 0 or -errno. */
int output_finish(struct output *output);
void output_close(struct output *output);

#endif
