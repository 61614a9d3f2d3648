/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock for sections of a few instructions. A plain store gives it back, where lock.h takes one
 * more atomic step, to learn whether somebody sleeps for it: so nobody is woken. Who finds it taken
 * looks again, lets others have his CPU, which may be that of who has it, and at last naps.
 */
#ifndef WEIR_LIB_BASE_SPINLOCK_H
#define WEIR_LIB_BASE_SPINLOCK_H

#include <stdbool.h>

/* struct weir_spinlock - zero to begin with. @is_taken: atomic */
struct weir_spinlock {
	bool is_taken;
};

static inline bool weir_spinlock_trylock(struct weir_spinlock *lock)
{
	return !__atomic_exchange_n(&lock->is_taken, true, __ATOMIC_ACQUIRE);
}

/* Not inline: it is seldom called, and where it is called from is to be short. */
void weir_spinlock_lock_slow(struct weir_spinlock *lock);

static inline void weir_spinlock_lock(struct weir_spinlock *lock)
{
	if (!weir_spinlock_trylock(lock))
		weir_spinlock_lock_slow(lock);
}

static inline void weir_spinlock_unlock(struct weir_spinlock *lock)
{
	__atomic_store_n(&lock->is_taken, false, __ATOMIC_RELEASE);
}

#endif
