/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <sched.h>
#include <time.h>

#include "lib/base/spinlock.h"

#define SPINS_MAX 100 /* about as long as a critical section */
#define YIELDS_MAX 16
#define NAP_NS 20000 /* lets a holder of lower priority run */

static bool spin_for_lock(struct weir_spinlock *lock)
{
	int spins;

	for (spins = 0; spins < SPINS_MAX; spins++) {
		if (!__atomic_load_n(&lock->is_taken, __ATOMIC_RELAXED) &&
		    weir_spinlock_trylock(lock))
			return true;
	}
	return false;
}

void weir_spinlock_lock_slow(struct weir_spinlock *lock)
{
	int yields = 0;

	while (!spin_for_lock(lock)) {
		if (yields++ < YIELDS_MAX)
			sched_yield();
		else
			nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	}
}
