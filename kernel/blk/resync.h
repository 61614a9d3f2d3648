/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fills new replicas: reads a chunk from a valid replica or from the local disk, and writes the
 * chunk to the new one. local.c uses the same steps to read chunks.
 */
#ifndef WEIR_KERNEL_BLK_RESYNC_H
#define WEIR_KERNEL_BLK_RESYNC_H

#include <linux/completion.h>

#include "kernel/blk/volume.h"

static_assert(WEIR_EXTENTS_CHUNK_PAGES <= KWEIR_IO_SEGMENTS, "a chunk is one io");

/**
 * struct weir_blk_resync - a chunk in transfer
 * @ended: completes with @io
 * @sgl: the pages of the current step
 * @sums: expected checksums of pages that are read
 * @seal: verifies encrypted pages, or NULL
 */
struct weir_blk_resync {
	struct kweir_io io;
	struct completion ended;
	struct scatterlist sgl[WEIR_EXTENTS_CHUNK_PAGES];
	u32 sums[WEIR_EXTENTS_CHUNK_PAGES];
	struct weir_blk_seal *seal;
	struct page *page[WEIR_EXTENTS_CHUNK_PAGES];
};

/* Allocates the memory of a chunk. Return: 0; -ENOMEM, with the reason in @error. */
int weir_blk_resync_alloc(const struct weir_blk_cipher *cipher, struct weir_blk_resync **resync,
			  struct kweir_error *error);
void weir_blk_resync_free(struct weir_blk_resync *resync);

/*
 * Starts a step, READ or WRITE, and notes the expected checksums of pages read. With the volume's
 * lock held. Return: 0, and the caller owes a weir_blk_resync_wait_step() without the lock; or an
 * errno.
 */
int weir_blk_resync_start_step(struct weir_blk_volume *volume, struct weir_blk_resync *resync,
			       const struct weir_extents_copy_step *step);

/* Whether the pages of a step that was read are as expected. They stay encrypted. */
bool weir_blk_resync_is_right(const struct weir_blk_volume *volume, struct weir_blk_resync *resync,
			      const struct weir_extents_copy_step *step);

/* Waits for the step to end. Return: the errno of the step. */
int weir_blk_resync_wait_step(struct weir_blk_resync *resync);

/* The work @volume->resync_work: fills all new replicas. */
void weir_blk_resync(struct work_struct *work);

#endif
