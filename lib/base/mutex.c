/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/base/futex.h"
#include "lib/base/mutex.h"

#define SPINS_MAX 100 /* about as long as a critical section */

static bool spin_for_lock(struct weir_mutex *lock)
{
	int spins;

	for (spins = 0; spins < SPINS_MAX; spins++) {
		if (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) == WEIR_MUTEX_FREE &&
		    weir_mutex_trylock(lock))
			return true;
	}
	return false;
}

/* A woken thread cannot know whether others still sleep, so it takes the lock as contended. */
void weir_mutex_lock_slow(struct weir_mutex *lock)
{
	if (spin_for_lock(lock))
		return;
	while (__atomic_exchange_n(&lock->word, WEIR_MUTEX_CONTENDED, __ATOMIC_ACQUIRE) !=
	       WEIR_MUTEX_FREE)
		weir_futex_wait(&lock->word, WEIR_MUTEX_CONTENDED, UINT64_MAX);
}

void weir_mutex_wake(struct weir_mutex *lock)
{
	weir_futex_wake(&lock->word, 1);
}
