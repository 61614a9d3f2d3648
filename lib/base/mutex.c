/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/base/futex.h"
#include "lib/base/mutex.h"

#define LOOKS_MAX 100 /* about as long as a section takes */

static bool look(struct weir_lock *lock)
{
	int looks;

	for (looks = 0; looks < LOOKS_MAX; looks++) {
		if (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) == WEIR_LOCK_FREE &&
		    weir_lock_try(lock))
			return true;
	}
	return false;
}

/* Who has slept cannot know whether others still do, and so takes it as one that is wanted. */
void weir_lock_wait(struct weir_lock *lock)
{
	if (look(lock))
		return;
	while (__atomic_exchange_n(&lock->word, WEIR_LOCK_WANTED, __ATOMIC_ACQUIRE) !=
	       WEIR_LOCK_FREE)
		weir_futex_wait(&lock->word, WEIR_LOCK_WANTED, UINT64_MAX);
}

void weir_lock_wake(struct weir_lock *lock)
{
	weir_futex_wake(&lock->word, 1);
}
