/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bounce memory, mapped for the device as long as a session lasts: RDMAbox's preMR, the baseline
 * for mapping pages on demand. A write is copied into bounce memory at submit; a read is copied out
 * at completion.
 */
#ifndef WEIR_KERNEL_WEIR_BOUNCE_H
#define WEIR_KERNEL_WEIR_BOUNCE_H

#include <linux/spinlock.h>

#include "kernel/weir/weir.h"

struct kweir_nic;

/**
 * struct kweir_bounce_pool - pieces of memory of KWEIR_BOUNCE_BYTES each
 * @piece: @nr pieces, mapped for the device at @dma
 * @free: the numbers of the @nr_free unused pieces; guarded by @lock
 */
struct kweir_bounce_pool {
	spinlock_t lock;
	struct kweir_nic *nic;
	struct page **piece;
	u64 *dma;
	u16 *free;
	u32 nr, nr_free;
};

/* Allocates and maps @bytes, the most that may be in flight.
 *
 * Context: process; sleeps. Return: 0, and the caller owes a kweir_bounce_fini(); or -ENOMEM. */
int kweir_bounce_init(struct kweir_bounce_pool *bounce, struct kweir_nic *nic, u64 bytes);
void kweir_bounce_fini(struct kweir_bounce_pool *bounce);

/*
 * Takes pieces for an io of @bytes into io->copy, and fills the pieces of a write.
 *
 * Context: any but hard interrupts; never sleeps. Return: 0; -ENOMEM no piece is free now.
 */
int kweir_bounce_take(struct kweir_bounce_pool *bounce, struct kweir_io *io, u64 bytes);

/* Gives the pieces of @io back. The data of a read has been copied to the caller's memory. */
void kweir_bounce_give(struct kweir_bounce_pool *bounce, struct kweir_io *io);

/* The bytes that piece @index holds of an io of @bytes. */
static inline u32 kweir_bounce_length(u64 bytes, u32 index)
{
	return min_t(u64, bytes - (u64)index * KWEIR_BOUNCE_BYTES, KWEIR_BOUNCE_BYTES);
}

#endif
