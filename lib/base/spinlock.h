/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock for sections of a few instructions. Unlocking is a plain store and wakes nobody, where
 * mutex.h needs an atomic exchange to learn of sleepers. A thread that finds the lock taken spins,
 * then yields the CPU, which the holder may need, and at last naps.
 */
#ifndef WEIR_LIB_BASE_SPINLOCK_H
#define WEIR_LIB_BASE_SPINLOCK_H

#include <stdbool.h>

/* struct weir_spinlock - initialised with zeros. @is_taken: atomic */
struct weir_spinlock {
	bool is_taken;
};

static inline bool weir_spinlock_trylock(struct weir_spinlock *lock)
{
	return !__atomic_exchange_n(&lock->is_taken, true, __ATOMIC_ACQUIRE);
}

/* Out of line: seldom called, and the callers should stay small. */
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
