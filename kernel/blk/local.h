/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last resort: a block device of this machine. The disk receives a delayed copy of all writes,
 * and serves reads that no donor can. The copy is useful only as long as the volume exists, because
 * only the volume knows the valid parts. Pages of an encrypted volume are copied as they are at the
 * donors: the disk holds no plaintext.
 *
 * All functions accept NULL for a volume without a disk, unless noted.
 */
#ifndef WEIR_KERNEL_BLK_LOCAL_H
#define WEIR_KERNEL_BLK_LOCAL_H

#include <linux/blk-mq.h>

#include "kernel/blk/volume.h"

struct weir_blk_local;

/*
 * Opens the device at @path exclusively for @volume.
 *
 * Context: process; sleeps. Return: 0, and @volume->local owes a weir_blk_local_stop() and a
 * weir_blk_local_close(); or a negative errno with the reason in @error.
 */
int weir_blk_local_open(struct weir_blk_volume *volume, const char *path,
			struct kweir_error *error);

/* Stops copying, before the sessions end. The caller has no read queued. */
void weir_blk_local_stop(struct weir_blk_local *local);
void weir_blk_local_close(struct weir_blk_local *local);

/* Reports a possible write. Context: any. */
void weir_blk_local_kick(struct weir_blk_local *local);

/*
 * Queues a read of @nents pieces that no donor can serve; not NULL. Context: any but hard
 * interrupts.
 */
void weir_blk_local_queue(struct weir_blk_local *local, struct request *rq, unsigned int nents);

/* Reads from the disk; not NULL. Context: process; sleeps. Return: 0 or a negative errno. */
int weir_blk_local_read(struct weir_blk_local *local, u64 offset, struct scatterlist *sgl,
			unsigned int nents);

bool weir_blk_local_is_too_small(const struct weir_blk_local *local, u64 bytes);

void weir_blk_local_facts(const struct weir_blk_local *local, struct weir_blk_facts *facts);

#endif
