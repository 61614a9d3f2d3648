/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A block device over a volume.
 *
 * A completed write lies in the memory of donors, so a flush has nothing to do and FUA changes
 * nothing. The data lives as long as the last of these donors' processes. Afterwards every request
 * ends with an error, never with wrong data.
 */
#ifndef WEIR_KERNEL_BLK_DEVICE_H
#define WEIR_KERNEL_BLK_DEVICE_H

#include <linux/blk-mq.h>

#include "kernel/blk/volume.h"

/**
 * struct weir_blk - one device
 * @entry: in the list of all devices, sorted by @number; guarded by a mutex of device.c's, like the
 *	device's lifetime
 * @is_there: attached; false: being attached or detached, with the number taken
 * @disk: NULL: of a pool's volume that has not started yet
 * @resizing: must not be detached now
 * @detaching: nobody may open the device any more; guarded by disk->open_mutex
 */
struct weir_blk {
	struct list_head entry;
	u32 number;
	bool is_there;
	bool resizing;
	struct weir_blk_volume volume;
	struct blk_mq_tag_set tags;
	struct gendisk *disk;
	bool detaching;
};

/* Return: 0, with the @number of /dev/weirN; or a negative errno, with the reason in @error. */
int weir_blk_attach(const struct weir_blk_setup *setup, u32 *number, struct kweir_error *error);

/* Return: 0; -ENODEV no such device; -EBUSY the device is open, or being attached. */
int weir_blk_detach(u32 number, struct kweir_error *error);

/*
 * Resizes a device. A device in use may only grow.
 *
 * Return: 0; -ENODEV, -EBUSY as above; -EINVAL invalid size; -ENOSPC the donors have no room;
 * -ENOMEM.
 */
int weir_blk_resize(u32 number, u64 bytes, struct kweir_error *error);

/*
 * Makes the disk of a pool's volume, whose copies are equal.
 *
 * Return: 0; -ENODEV no such device, or its @layout is another; -EBUSY as above; -EAGAIN the copies
 * are not equal yet; -EINVAL there is a disk; -ENOMEM.
 */
int weir_blk_start(u32 number, const struct weir_blk_layout *layout, struct kweir_error *error);

/*
 * Calls @visit for a device with a pool. @layout tells it from others that have had its number.
 * Return: as @visit; -ENODEV no such device.
 */
int weir_blk_visit_pool(u32 number, const struct weir_blk_layout *layout,
			int (*visit)(struct weir_blk *blk, void *arg), void *arg,
			struct kweir_error *error);

/**
 * weir_blk_for_each() - call @visit for each device with a number of @first or more
 *
 * Context: process. Return: 0, or the first nonzero value from @visit.
 */
int weir_blk_for_each(u32 first, int (*visit)(struct weir_blk *blk, void *arg), void *arg);

int weir_blk_init(void);
void weir_blk_exit(void);

#endif
