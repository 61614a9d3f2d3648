/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A block device over one region of one donor.
 *
 * What it promises: a write that has completed is in the donor's memory, so there is nothing to
 * flush, and FUA means nothing more; it is as durable as the donor's process. When the donor is
 * gone all ends with an error, never with wrong data.
 */
#ifndef WEIR_KERNEL_BLK_DEVICE_H
#define WEIR_KERNEL_BLK_DEVICE_H

#include <linux/blk-mq.h>

#include "kernel/weir/weir.h"
#include "wire/blk.h"
#include "wire/control.h"

/**
 * struct weir_blk - one device
 * @entry: in the list of all, by @number; guarded by a mutex of device.c's, as is its life
 * @donor, @name, @options: as it was attached
 * @detaching: nobody may open it any more; guarded by disk->open_mutex
 */
struct weir_blk {
	struct list_head entry;
	u32 number;
	struct sockaddr_storage donor;
	char name[WIRE_NAME_MAX + 1];
	struct weir_options options;
	struct weir_session *session;
	struct weir_region region;
	struct blk_mq_tag_set tags;
	struct gendisk *disk;
	bool detaching;
};

/**
 * struct weir_blk_setup - what is wanted
 * @donor: its address
 * @name: of a region at the donor, which is made if it is not there; "": one without a name
 * @bytes: a multiple of 4096; 0: as large as the region @name is
 * @key: or NULL
 * @options: of the session
 */
struct weir_blk_setup {
	struct sockaddr_storage donor;
	char name[WIRE_NAME_MAX + 1];
	u64 bytes;
	struct key *key;
	struct weir_options options;
};

/* Return: 0, with the @number of /dev/weirN; or a negative errno, with the reason in @error. */
int weir_blk_attach(const struct weir_blk_setup *setup, u32 *number, struct weir_error *error);

/* Return: 0; -ENODEV no such device; -EBUSY it is open. */
int weir_blk_detach(u32 number, struct weir_error *error);

/**
 * weir_blk_for_each() - call @visit for each device with a number of @first or more
 *
 * Context: process. Return: 0, or what @visit returned that was not.
 */
int weir_blk_for_each(u32 first, int (*visit)(struct weir_blk *blk, void *arg), void *arg);

int weir_blk_init(void);
void weir_blk_exit(void);

#endif
