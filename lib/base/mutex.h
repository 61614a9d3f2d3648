/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A mutex for short critical sections. Taking a free lock, and giving back a lock without sleepers,
 * are one instruction each. A thread that finds the lock taken spins briefly, then sleeps. (The
 * third mutex of Drepper, Futexes Are Tricky, 2011.)
 *
 * All operations are sequentially consistent, as core/base/combine.h demands.
 */
#ifndef WEIR_LIB_BASE_MUTEX_H
#define WEIR_LIB_BASE_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct weir_mutex - initialised with zeros
 * @word: an enum weir_mutex_state; atomic
 */
struct weir_mutex {
	uint32_t word;
};

enum weir_mutex_state {
	WEIR_MUTEX_FREE,
	WEIR_MUTEX_LOCKED,
	WEIR_MUTEX_CONTENDED, /* taken, and threads may sleep on @word */
};

/* Return: true if the caller now holds the lock. */
static inline bool weir_mutex_trylock(struct weir_mutex *lock)
{
	uint32_t found = WEIR_MUTEX_FREE;

	return __atomic_compare_exchange_n(&lock->word, &found, WEIR_MUTEX_LOCKED, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void weir_mutex_lock_slow(struct weir_mutex *lock);
void weir_mutex_wake(struct weir_mutex *lock);

static inline void weir_mutex_lock(struct weir_mutex *lock)
{
	if (!weir_mutex_trylock(lock))
		weir_mutex_lock_slow(lock);
}

static inline void weir_mutex_unlock(struct weir_mutex *lock)
{
	if (__atomic_exchange_n(&lock->word, WEIR_MUTEX_FREE, __ATOMIC_SEQ_CST) ==
	    WEIR_MUTEX_CONTENDED)
		weir_mutex_wake(lock);
}

#endif
