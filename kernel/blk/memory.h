/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which donor's memory is where in a volume: it is asked for, moved and given back as core/volume/volume.h
 * says.
 */
#ifndef WEIR_KERNEL_BLK_MEMORY_H
#define WEIR_KERNEL_BLK_MEMORY_H

#include "kernel/blk/volume.h"

/* A volume of @setup, without memory yet. Return: 0; -ENOMEM, -EINVAL. */
int weir_blk_memory_init(struct weir_blk_volume *volume, const struct weir_blk_setup *setup);
void weir_blk_memory_fini(struct weir_blk_volume *volume);

/*
 * Borrows all of it, when it is attached.
 *
 * Context: as of all that follow down to weir_blk_memory_resize(): process; sleeps; with
 * @volume->maintenance held. Return: 0, or a negative errno with the reason in @error.
 */
int weir_blk_memory_borrow(struct weir_blk_volume *volume, struct kweir_error *error);

/* Asks for what is missing. Return: 0; -ENOSPC, with the reason in @error if a donor said one. */
int weir_blk_memory_fetch(struct weir_blk_volume *volume, struct kweir_error *error);

/*
 * Gives back what nobody needs any more: what was at donors that are gone, and, with @tell, what
 * those have that are there. Who is silent or slow is told later. Return: whether there is room now
 * for something.
 */
bool weir_blk_memory_return(struct weir_blk_volume *volume, bool tell);

/* Asks what a donor lends. */
int weir_blk_memory_query_room(struct weir_blk_volume *volume, u8 donor, struct kweir_error *error);

/*
 * Asks who was silent, if it is time: one, so that many of them do not keep the others waiting. Who
 * answers is as others are from then on.
 */
void weir_blk_memory_retry_silent(struct weir_blk_volume *volume);

/* Another size: what is new is there when it returns; what is beyond the end is gone. */
int weir_blk_memory_resize(struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error);

/*
 * Memory where it will be written, if there is none: see weir_volume_provide(); after -EAGAIN the
 * caller wakes the work, once. With the lock held.
 */
int weir_blk_memory_provide(struct weir_blk_volume *volume, u32 extent);

/* All of this is zeroes from now on; @keep: and has memory. Context: any; takes the lock. */
void weir_blk_memory_zero(struct weir_blk_volume *volume, u64 offset, u64 bytes, bool keep);

#endif
