/* SPDX-License-Identifier: GPL-2.0-only */
/* From the block layer's requests to weir's ios, and back. */
#ifndef WEIR_KERNEL_BLK_QUEUE_H
#define WEIR_KERNEL_BLK_QUEUE_H

#include <linux/blk-mq.h>

struct weir_blk;

/* Fills in @tags. Return: 0 or a negative errno; then owes a blk_mq_free_tag_set(). */
int weir_blk_queue_tags(struct blk_mq_tag_set *tags, const struct weir_blk *blk);

/* What a request may be like. */
void weir_blk_queue_limits(struct queue_limits *limits, const struct weir_blk *blk);

#endif
