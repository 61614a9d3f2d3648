/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <sched.h>
#include <time.h>

#include "lib/base/spinlock.h"

#define LOOKS_MAX 100 /* about as long as a section takes */
#define YIELDS_MAX 16
#define NAP_NS 20000 /* where who has it can only run when this thread does not, by its priority */

static bool look(struct weir_latch *latch)
{
	int looks;

	for (looks = 0; looks < LOOKS_MAX; looks++) {
		if (!__atomic_load_n(&latch->is_taken, __ATOMIC_RELAXED) && weir_latch_try(latch))
			return true;
	}
	return false;
}

void weir_latch_wait(struct weir_latch *latch)
{
	int yields = 0;

	while (!look(latch)) {
		if (yields++ < YIELDS_MAX)
			sched_yield();
		else
			nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	}
}
