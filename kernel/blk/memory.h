/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where each piece of a volume lies: borrows, moves and returns memory as core/volume/borrow.h and
 * extents.h decide.
 */
#ifndef WEIR_KERNEL_BLK_MEMORY_H
#define WEIR_KERNEL_BLK_MEMORY_H

#include "kernel/blk/volume.h"

/* The extents of a volume of this many bytes. */
u32 weir_blk_memory_extents(const struct weir_blk_volume *volume, u64 bytes);

/* Prepares a volume of @setup, without memory. Return: 0; -ENOMEM, -EINVAL. */
int weir_blk_memory_init(struct weir_blk_volume *volume, const struct weir_blk_setup *setup);

/* Prepares a volume of a pool, with @volume->stripe. Return: 0; -ENOMEM, -EINVAL. */
int weir_blk_memory_init_mapped(struct weir_blk_volume *volume, u32 nr_extents, u8 replicas);
void weir_blk_memory_fini(struct weir_blk_volume *volume);

/*
 * Borrows all memory, at attach.
 *
 * Context: process; sleeps; with @volume->maintenance held. The same context applies to all
 * functions down to weir_blk_memory_resize(). Return: 0, or a negative errno with the reason in
 * @error.
 */
int weir_blk_memory_borrow(struct weir_blk_volume *volume, struct kweir_error *error);

/*
 * Borrows and returns memory as core/volume/borrow.h decides, in the phases from @first to @last.
 * If memory is missing afterwards, @volume->borrow.is_short, and @error has the reason if a donor
 * gave one; @error may be NULL.
 */
void weir_blk_memory_round(struct weir_blk_volume *volume, enum weir_borrow_phase first,
			   enum weir_borrow_phase last, struct kweir_error *error);

/* Asks a donor how much memory the donor would lend. */
int weir_blk_memory_query_room(struct weir_blk_volume *volume, u8 donor, struct kweir_error *error);

/* Resizes the volume: new extents have memory on return, and extents beyond the end are gone. */
int weir_blk_memory_resize(struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error);

/*
 * Provides memory for a write to @extent: see weir_extents_provide(), and of a pool's volume
 * weir_blk_pool_may_write(). After -EAGAIN the caller wakes the work, once. With the lock held.
 */
int weir_blk_memory_provide(struct weir_blk_volume *volume, u32 extent);

/* Makes a range read as zeroes; @keep: the range keeps memory. Context: any; takes the lock. */
void weir_blk_memory_zero(struct weir_blk_volume *volume, u64 offset, u64 bytes, bool keep);

#endif
