/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The log of a volume of files: all changes since a checkpoint, in batches. A batch has a CRC32C,
 * a number, and the checkpoint's random salt. So a torn batch does not count, nor do remains of
 * an earlier log, even if a client could choose the bytes.
 */
#ifndef WEIR_FSD_JOURNAL_LOG_H
#define WEIR_FSD_JOURNAL_LOG_H

#include <stdbool.h>

#include "fsd/image/bytes.h"
#include "fsd/journal/disk.h"

/*
 * Of the records, and of what they do: a server repeats those of its own version only. Raise it
 * with any change after which the same requests could lead to another state.
 */
#define FSD_LOG_VERSION 5u

/**
 * struct fsd_log - a log
 * @disk: where it lies, from @start on, in @bytes
 * @salt: of its checkpoint
 * @next: number of the next batch, from 0; @end: where it begins
 */
struct fsd_log {
	const struct fsd_disk *disk;
	uint64_t start, bytes, salt, next, end;
};

/* Begins an empty log after a checkpoint. */
void fsd_log_begin(struct fsd_log *log, uint64_t salt);

/*
 * Appends a batch. Return: 0: durable; -ENOSPC too long, and nothing has happened;
 * -ENOMEM; or of the disk.
 */
int fsd_log_append(struct fsd_log *log, const struct fsd_bytes *batch);

/*
 * Reads the next batch. @batch: receives its bytes; the caller owes a fsd_bytes_free(). Return: 0;
 * -ENODATA no further batch is whole; -EIO the next was whole once; -EPROTONOSUPPORT it is of
 * another version; -ENOMEM; or of the disk.
 */
int fsd_log_read(struct fsd_log *log, struct fsd_bytes *batch);

#endif
