/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last resort: a block device of this machine, that gets a copy of what was written, later, and
 * is read where no donor can be. What it has is of use as long as the volume is there, and no
 * longer: it is the volume that knows which of it is good.
 *
 * All functions take NULL for a volume without, unless noted.
 */
#ifndef WEIR_KERNEL_BLK_LOCAL_H
#define WEIR_KERNEL_BLK_LOCAL_H

#include <linux/blk-mq.h>

#include "kernel/blk/volume.h"

struct weir_blk_local;

/*
 * Opens the device at @path, which nobody else may use, for @volume.
 *
 * Context: process; sleeps. Return: 0, and @volume->local owes a weir_blk_local_stop() and a
 * weir_blk_local_close(); or a negative errno with the reason in @error.
 */
int weir_blk_local_open(struct weir_blk_volume *volume, const char *path,
			struct kweir_error *error);

/* Nothing more is copied; before the sessions end. Nothing is queued. */
void weir_blk_local_stop(struct weir_blk_local *local);
void weir_blk_local_close(struct weir_blk_local *local);

/* Something may have been written. Context: any. */
void weir_blk_local_kick(struct weir_blk_local *local);

/*
 * A read, of @nents pieces, that no donor can answer; not NULL. Context: any but hard interrupts.
 */
void weir_blk_local_queue(struct weir_blk_local *local, struct request *rq, unsigned int nents);

/* Reads what it has; not NULL. Context: process; sleeps. Return: 0 or a negative errno. */
int weir_blk_local_read(struct weir_blk_local *local, u64 offset, struct scatterlist *sgl,
			unsigned int nents);

bool weir_blk_local_is_too_small(const struct weir_blk_local *local, u64 bytes);

void weir_blk_local_facts(const struct weir_blk_local *local, struct weir_blk_facts *facts);

#endif
