/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns requests of the block layer into weir's ios, and completions back. */
#ifndef WEIR_KERNEL_BLK_QUEUE_H
#define WEIR_KERNEL_BLK_QUEUE_H

#include <linux/blk-mq.h>

struct weir_blk;

/* Fills in @tags. Return: 0, and the caller owes a blk_mq_free_tag_set(); or a negative errno. */
int weir_blk_queue_tags(struct blk_mq_tag_set *tags, struct weir_blk *blk);

/* Sets the limits of a request. */
void weir_blk_queue_limits(struct queue_limits *limits, const struct weir_blk *blk);

#endif
