/* SPDX-License-Identifier: GPL-2.0-only */
/* What a device has done: to netlink, and in /sys/block/weirN/weir. */
#ifndef WEIR_KERNEL_BLK_STAT_H
#define WEIR_KERNEL_BLK_STAT_H

#include "kernel/blk/volume.h"

/* @counters: receives WEIR_BLK_COUNTERS_NR of them. */
void weir_blk_counters(const struct weir_blk_facts *facts, u64 *counters);

/* Of the disk: a file for each counter, once weir_blk_stat_init() was called. */
void weir_blk_stat_init(void);
extern const struct attribute_group *weir_blk_groups[];

#endif
