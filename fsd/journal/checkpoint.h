/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two checkpoints of a volume of files. A new checkpoint overwrites the older. The first page
 * is written last, and makes the checkpoint count. So at any time a whole checkpoint exists,
 * together with a log.
 */
#ifndef WEIR_FSD_JOURNAL_CHECKPOINT_H
#define WEIR_FSD_JOURNAL_CHECKPOINT_H

#include "fsd/image/bytes.h"
#include "fsd/journal/layout.h"

/**
 * fsd_checkpoint_write() - write the next checkpoint
 * @disk, @layout: of the file system
 * @generation: the number, from 1 on
 * @salt: drawn by lot, for its log
 * @state: its bytes
 *
 * Return: 0: durable; -ENOSPC too long; -ENOMEM; or of the disk.
 */
int fsd_checkpoint_write(const struct fsd_disk *disk, const struct fsd_layout *layout,
			 uint64_t generation, uint64_t salt, const struct fsd_bytes *state);

/*
 * Reads the newest. The caller owes a fsd_bytes_free() of @state. Return: 0; -EIO none, or
 * damaged; -EPROTONOSUPPORT of another version; -ENOMEM; or of the disk. A checkpoint with a head
 * was whole once: an older checkpoint without a log is no substitute.
 */
int fsd_checkpoint_read(const struct fsd_disk *disk, const struct fsd_layout *layout,
			uint64_t *generation, uint64_t *salt, struct fsd_bytes *state);

#endif
