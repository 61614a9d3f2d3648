/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A line on the terminal that tells how far a command is, at which rate, and the time left. */
#ifndef WEIR_APPS_FS_PROGRESS_H
#define WEIR_APPS_FS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct fs_progress - of a command
 * @total: bytes to do; 0: unknown
 * @skipped: bytes of @done that an earlier run has done: they tell nothing about the rate
 */
struct fs_progress {
	bool is_terminal, is_shown;
	uint64_t total, done, skipped, entries;
	uint64_t start_ns, shown_ns;
};

void progress_begin(struct fs_progress *progress);
/* Shows the line, if the last time is long enough ago. */
void progress_show(struct fs_progress *progress);
/* Removes the line, so that a message can be printed. */
void progress_clear(struct fs_progress *progress);
double progress_seconds(const struct fs_progress *progress);

#endif
