/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fills replicas that came anew: reads a chunk from one that is valid, or from the local disk, and
 * writes it there. And what local.c needs of it, which reads chunks as well.
 */
#ifndef WEIR_KERNEL_BLK_RESYNC_H
#define WEIR_KERNEL_BLK_RESYNC_H

#include <linux/completion.h>

#include "kernel/blk/volume.h"

static_assert(WEIR_VOLUME_CHUNK_PAGES <= KWEIR_IO_SEGMENTS, "a chunk is one io");

/**
 * struct weir_blk_resync - a chunk on its way
 * @ended: @io has
 * @sgl: of the pages that the step under way is about
 * @sums: what they should be, of those that are read
 */
struct weir_blk_resync {
	struct kweir_io io;
	struct completion ended;
	struct scatterlist sgl[WEIR_VOLUME_CHUNK_PAGES];
	u32 sums[WEIR_VOLUME_CHUNK_PAGES];
	struct page *page[WEIR_VOLUME_CHUNK_PAGES];
};

/* The memory of a chunk. Return: 0; -ENOMEM. */
int weir_blk_resync_alloc(struct weir_blk_resync **fill);
void weir_blk_resync_free(struct weir_blk_resync *fill);

/*
 * Begins a step, READ or WRITE, and notes what pages that are read should be. With the volume's
 * lock held. Return: 0, and owes a weir_blk_resync_wait_step() without it; or it cannot even be tried.
 */
int weir_blk_resync_start_step(struct weir_blk_volume *volume, struct weir_blk_resync *fill,
			       const struct weir_volume_copy_step *step);

/* Until that has ended. Return: its errno. */
int weir_blk_resync_wait_step(struct weir_blk_resync *fill);

/* The work of @volume->resync_work: all that is to be filled. */
void weir_blk_resync(struct work_struct *work);

#endif
