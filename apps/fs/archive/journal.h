/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The journal of an import: a file at the root of the tree with a line of sums.h for each whole
 * entry, in the order of the archive. A later import of the same archive goes on behind the last.
 */
#ifndef WEIR_APPS_FS_ARCHIVE_JOURNAL_H
#define WEIR_APPS_FS_ARCHIVE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "apps/fs/archive/sums.h"

/**
 * struct journal - of the current directory
 * @done: entries, also those of this run
 * @earlier: of @done, those of earlier runs
 * @pending: lines that are not in the file yet
 */
struct journal {
	int fd;
	struct sums done;
	size_t earlier;
	FILE *pending;
	char *text;
	size_t length;
	uint64_t saved_ns;
};

/**
 * journal_open() - make the journal, or read the one of an earlier run
 * @restart: forget the earlier run
 * @is_new: there is no earlier run
 *
 * The caller owes a journal_close(), also after a failure.
 *
 * Return: 0, or an exit status after a message.
 */
int journal_open(struct journal *journal, const char *cmd, bool restart, bool *is_new);

/* An entry is whole. @digest: NULL: without bytes. Return: 0 or a negative errno. */
int journal_note(struct journal *journal, const char *path, const uint8_t *digest);
/* Writes the lines. Return: 0 or a negative errno. */
int journal_save(struct journal *journal);
/* Removes the file. Return: 0 or a negative errno. */
int journal_remove(struct journal *journal);
void journal_close(struct journal *journal);

#endif
