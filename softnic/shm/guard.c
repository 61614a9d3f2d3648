// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Store-load pairing. A copier makes the guard odd, then looks up memory and rights. A thread
 * that revokes stores the change, then loads the guards. At least one side sees the other.
 */
#include "guard.h"

#ifdef __SANITIZE_THREAD__
char guard_passage;
#endif

bool guard_claim(struct copy_guard *guard, const struct copy_guards *guards, uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < guards->num; i++) {
		struct shared_guard *g = &guards->at[i];
		uint32_t nobody = 0;

		if (load_acquire(&g->user) != qpn &&
		    !__atomic_compare_exchange_n(&g->user, &nobody, qpn, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_RELAXED))
			continue;
		store_release(&g->cut, 0);
		*guard = (struct copy_guard){ g, load_acquire(&g->count) & ~(uint32_t)1 };
		return true;
	}
	return false;
}

void guard_release(struct copy_guard *guard)
{
	if (guard->shared)
		store_release(&guard->shared->user, 0);
	*guard = (struct copy_guard){ 0 };
}

void guard_cut(const struct copy_guards *guards, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < guards->num; i++) {
		if (load_acquire(&guards->at[i].user) >> SOFTNIC_QP_INDEX_BITS == slot)
			store_ordered(&guards->at[i].cut, 1);
	}
}

void guard_walk_past(struct copy_guard_walk *walk)
{
	walk->at++;
	walk->waits = false;
	walk->cut_ns = 0;
}

bool guard_walk_on(struct copy_guard_walk *walk, const struct copy_guards *guards)
{
	uint32_t count;

	for (; walk->at < guards->num; guard_walk_past(walk)) {
		count = load_ordered(&guards->at[walk->at].count);
		if (!(count & 1) || (walk->waits && count != walk->count))
			continue;
		walk->count = count;
		walk->waits = true;
		return false;
	}
	guard_tsan(acquire);
	return true;
}
