/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sleeping on a word, see futex(2). Waits may end early: the caller checks its condition again. */
#ifndef WEIR_LIB_BASE_FUTEX_H
#define WEIR_LIB_BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/clock.h"

/* Wakes at most @count of the threads that sleep on @word. */
static inline void weir_futex_wake(uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* Sleeps while @word is @value, until @deadline_ns; UINT64_MAX: for ever. */
static inline void weir_futex_wait(uint32_t *word, uint32_t value, uint64_t deadline_ns)
{
	struct timespec at = weir_timespec(deadline_ns);

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
		deadline_ns == UINT64_MAX ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* For a word in memory shared with other processes: wakes all, sleeps without limit. */
static inline void weir_futex_wake_shared(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void weir_futex_wait_shared(uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

#endif
