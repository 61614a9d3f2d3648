/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of a device, for netlink and /sys/block/weirN/weir. */
#ifndef WEIR_KERNEL_BLK_STAT_H
#define WEIR_KERNEL_BLK_STAT_H

#include "kernel/blk/volume.h"

/* @counters: receives WEIR_BLK_COUNTERS_NR values. */
void weir_blk_counters(const struct weir_blk_facts *facts, u64 *counters);

/* A sysfs file for each counter; valid after weir_blk_stat_init(). */
void weir_blk_stat_init(void);
extern const struct attribute_group *weir_blk_groups[];

#endif
