/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who is between his checks and his copy: guards that lie in the segment of the queue pair
 * whose memory is copied to or from, one for each queue pair that does so.
 */
#ifndef WEIR_SOFTNIC_SHM_GUARD_H
#define WEIR_SOFTNIC_SHM_GUARD_H

#include "shared.h"

struct copy_guards {
	struct shared_guard *at;
	uint32_t num;
};

/* One's own guard in another's segment. Whose queue pair it is holds its lock. */
struct copy_guard {
	struct shared_guard *shared;
	uint32_t count; /* odd while within; what is found there is not trusted */
};

/*
 * Two ends in one process have a guard mapped twice. ThreadSanitizer takes that for two guards, so
 * what leaving one orders is said to it by one address.
 */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
extern char guard_passage;
#define guard_tsan(what) __tsan_##what(&guard_passage)
#else
#define guard_tsan(what) ((void)0)
#endif

/** guard_claim() - a guard for a queue pair; false if all are taken */
bool guard_claim(struct copy_guard *guard, const struct copy_guards *guards, uint32_t qpn);
/** guard_release() - it is no longer used */
void guard_release(struct copy_guard *guard);

/** guard_enter() - what is looked up from now on holds until guard_leave() */
static inline void guard_enter(struct copy_guard *guard)
{
	store_ordered(&guard->shared->count, ++guard->count);
}

static inline void guard_leave(struct copy_guard *guard)
{
	guard_tsan(release);
	store_release(&guard->shared->count, ++guard->count);
}

/* Where somebody has got to who waits until all that were within have left. Begins zeroed. */
struct copy_guard_walk {
	uint32_t at;
	uint32_t count; /* of the guard at that place, if it is waited for */
	bool waits;
	uint64_t since_ns;
};

/**
 * guard_walk_on() - go on as far as possible
 *
 * Return: true if all that were within when the walk began have left.
 */
bool guard_walk_on(struct copy_guard_walk *walk, const struct copy_guards *guards);

/** guard_walk_past() - the one that is waited for will not come back */
void guard_walk_past(struct copy_guard_walk *walk);

#endif
