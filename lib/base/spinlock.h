/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock for sections of a few instructions. A plain store gives it back, where lock.h takes one
 * more atomic step, to learn whether somebody sleeps for it: so nobody is woken. Who finds it taken
 * looks again, lets others have his CPU, which may be that of who has it, and at last naps.
 */
#ifndef WEIR_LIB_BASE_SPINLOCK_H
#define WEIR_LIB_BASE_SPINLOCK_H

#include <stdbool.h>

/* struct weir_latch - zero to begin with. @is_taken: atomic */
struct weir_latch {
	bool is_taken;
};

static inline bool weir_latch_try(struct weir_latch *latch)
{
	return !__atomic_exchange_n(&latch->is_taken, true, __ATOMIC_ACQUIRE);
}

/* Not inline: it is seldom called, and where it is called from is to be short. */
void weir_latch_wait(struct weir_latch *latch);

static inline void weir_latch_take(struct weir_latch *latch)
{
	if (!weir_latch_try(latch))
		weir_latch_wait(latch);
}

static inline void weir_latch_give(struct weir_latch *latch)
{
	__atomic_store_n(&latch->is_taken, false, __ATOMIC_RELEASE);
}

#endif
