/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that is mapped for the device for as long as a session lasts: RDMAbox's preMR, the
 * baseline that mapping pages as they come is compared with. What is written is copied there when
 * it is submitted, what is read is copied from there when it is done.
 */
#ifndef WEIR_KERNEL_WEIR_BOUNCE_H
#define WEIR_KERNEL_WEIR_BOUNCE_H

#include <linux/spinlock.h>

#include "kernel/weir/weir.h"

struct kweir_nic;

/**
 * struct kweir_bounce_pool - pieces of memory of KWEIR_BOUNCE_BYTES each
 * @piece: @nr of them, at @dma for the device
 * @free: the numbers of those that nobody has, @nr_free of them; guarded by @lock
 */
struct kweir_bounce_pool {
	spinlock_t lock;
	struct kweir_nic *nic;
	struct page **piece;
	u64 *dma;
	u16 *free;
	u32 nr, nr_free;
};

/* As much as may be in flight. Sleeps. Return: 0 or -ENOMEM; then owes a kweir_bounce_fini(). */
int kweir_bounce_init(struct kweir_bounce_pool *bounce, struct kweir_nic *nic, u64 bytes);
void kweir_bounce_fini(struct kweir_bounce_pool *bounce);

/*
 * Takes pieces for an io of @bytes, into io->copy, and fills them if it writes.
 *
 * Context: any but hard interrupts; never sleeps. Return: 0; -ENOMEM none are free, now.
 */
int kweir_bounce_take(struct kweir_bounce_pool *bounce, struct kweir_io *io, u64 bytes);

/* Gives them back; what was read is where it belongs, then. */
void kweir_bounce_give(struct kweir_bounce_pool *bounce, struct kweir_io *io);

/* How much of an io of @bytes is in its piece @index. */
static inline u32 kweir_bounce_length(u64 bytes, u32 index)
{
	return min_t(u64, bytes - (u64)index * KWEIR_BOUNCE_BYTES, KWEIR_BOUNCE_BYTES);
}

#endif
