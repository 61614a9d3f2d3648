/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where each piece of a volume lies: borrows, moves and returns memory as core/volume/extents.h
 * decides.
 */
#ifndef WEIR_KERNEL_BLK_MEMORY_H
#define WEIR_KERNEL_BLK_MEMORY_H

#include "kernel/blk/volume.h"

/* Prepares a volume of @setup, without memory. Return: 0; -ENOMEM, -EINVAL. */
int weir_blk_memory_init(struct weir_blk_volume *volume, const struct weir_blk_setup *setup);
void weir_blk_memory_fini(struct weir_blk_volume *volume);

/*
 * Borrows all memory, at attach.
 *
 * Context: process; sleeps; with @volume->maintenance held. The same context applies to all
 * functions down to weir_blk_memory_resize(). Return: 0, or a negative errno with the reason in
 * @error.
 */
int weir_blk_memory_borrow(struct weir_blk_volume *volume, struct kweir_error *error);

/* Borrows missing memory. Return: 0; -ENOSPC, with the reason in @error if a donor gave a reason.
 */
int weir_blk_memory_fetch(struct weir_blk_volume *volume, struct kweir_error *error);

/*
 * Returns unused memory: memory at lost donors and, with @tell, memory at live donors. Silent or
 * slow donors are told later. Return: true if room became free.
 */
bool weir_blk_memory_return(struct weir_blk_volume *volume, bool tell);

/* Asks a donor how much memory the donor would lend. */
int weir_blk_memory_query_room(struct weir_blk_volume *volume, u8 donor, struct kweir_error *error);

/*
 * Asks one silent donor again, if due; one at a time, so that many silent donors do not delay the
 * others. A donor that replies is silent no longer.
 */
void weir_blk_memory_retry_silent(struct weir_blk_volume *volume);

/* Resizes the volume: new extents have memory on return, and extents beyond the end are gone. */
int weir_blk_memory_resize(struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error);

/*
 * Provides memory for a write to @extent: see weir_extents_provide(). After -EAGAIN the caller
 * wakes the work, once. With the lock held.
 */
int weir_blk_memory_provide(struct weir_blk_volume *volume, u32 extent);

/* Makes a range read as zeroes; @keep: the range keeps memory. Context: any; takes the lock. */
void weir_blk_memory_zero(struct weir_blk_volume *volume, u64 offset, u64 bytes, bool keep);

#endif
