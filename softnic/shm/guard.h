/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guards mark a copier as being between checks and copy. They lie in the shared segment of the
 * queue pair whose memory is copied, one guard for each queue pair that copies.
 */
#ifndef WEIR_SOFTNIC_SHM_GUARD_H
#define WEIR_SOFTNIC_SHM_GUARD_H

#include "shared.h"

struct copy_guards {
	struct shared_guard *at;
	uint32_t num;
};

/* A queue pair's guard in its peer's segment. Serialised by the lock of that queue pair. */
struct copy_guard {
	struct shared_guard *shared;
	uint32_t count; /* odd while inside; the shared count is not trusted */
};

/*
 * With both ends in one process, the guard is mapped twice, and ThreadSanitizer sees two guards.
 * So one common address tells ThreadSanitizer of the order that guard_leave() creates.
 */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
extern char guard_passage;
#define guard_tsan(what) __tsan_##what(&guard_passage)
#else
#define guard_tsan(what) ((void)0)
#endif

/** guard_claim() - claim a guard for a queue pair; false if all are taken */
bool guard_claim(struct copy_guard *guard, const struct copy_guards *guards, uint32_t qpn);
/** guard_release() - give the guard back */
void guard_release(struct copy_guard *guard);

/** guard_enter() - begin to look up; what is found stays valid until guard_leave() */
static inline void guard_enter(struct copy_guard *guard)
{
	store_ordered(&guard->shared->count, ++guard->count);
}

static inline void guard_leave(struct copy_guard *guard)
{
	guard_tsan(release);
	store_release(&guard->shared->count, ++guard->count);
}

/* Progress of a waiter that waits until all copiers have left their guards. Begins zeroed. */
struct copy_guard_walk {
	uint32_t at;
	uint32_t count; /* of the guard at @at, if @waits */
	bool waits;
	uint64_t since_ns; /* of the walk */
	uint64_t cut_ns; /* when the copier at @at was cut off; 0: it is not */
};

/**
 * guard_walk_on() - pass all guards that are not inside
 *
 * Return: true if all copiers that were inside when the walk began have left.
 */
bool guard_walk_on(struct copy_guard_walk *walk, const struct copy_guards *guards);

/**
 * guard_cut() - say that we go on without a process
 * @slot: of the process; its queue pairs copy no more until they claim a guard again
 */
void guard_cut(const struct copy_guards *guards, uint32_t slot);

/** guard_walk_past() - skip the guard waited for, because its copier has died */
void guard_walk_past(struct copy_guard_walk *walk);

#endif
