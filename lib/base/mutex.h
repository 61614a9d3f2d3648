/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock whose sections are short: to take it when it is free, and to give it back when nobody
 * sleeps for it, is one instruction each. Who finds it taken looks a few times more, then sleeps.
 * (The third mutex of Drepper, Futexes Are Tricky, 2011.)
 *
 * All its operations are in the one order of sequentially consistent ones: serve.c's look at the
 * inbox relies on it.
 */
#ifndef WEIR_LIB_BASE_MUTEX_H
#define WEIR_LIB_BASE_MUTEX_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct weir_lock - zero to begin with
 * @word: an enum weir_lock_state; atomic
 */
struct weir_lock {
	uint32_t word;
};

enum weir_lock_state {
	WEIR_LOCK_FREE,
	WEIR_LOCK_TAKEN,
	WEIR_LOCK_WANTED, /* taken, and somebody may sleep for it */
};

/* Return: whether it is the caller's now. */
static inline bool weir_lock_try(struct weir_lock *lock)
{
	uint32_t found = WEIR_LOCK_FREE;

	return __atomic_compare_exchange_n(&lock->word, &found, WEIR_LOCK_TAKEN, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void weir_lock_wait(struct weir_lock *lock);
void weir_lock_wake(struct weir_lock *lock);

static inline void weir_lock_take(struct weir_lock *lock)
{
	if (!weir_lock_try(lock))
		weir_lock_wait(lock);
}

static inline void weir_lock_give(struct weir_lock *lock)
{
	if (__atomic_exchange_n(&lock->word, WEIR_LOCK_FREE, __ATOMIC_SEQ_CST) == WEIR_LOCK_WANTED)
		weir_lock_wake(lock);
}

#endif
