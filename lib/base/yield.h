/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Yield between two polls: the peer may need this CPU. */
#ifndef WEIR_LIB_BASE_YIELD_H
#define WEIR_LIB_BASE_YIELD_H

#include <sched.h>

#include "core/poll/idle_time.h"
#include "lib/base/clock.h"

/* The longest time to wake a sleeping thread on small virtual machines. */
#define WEIR_WAKE_NS 100000

/*
 * A session prefers polling for this long to sleeping through an event. The time exceeds the cost
 * of a wake-up, because a sleeping session also delays the user's next requests. A gap that the
 * session slept through looks at least WEIR_LATE_NS longer than it was.
 */
#define WEIR_AWAKE_NS 250000
#define WEIR_LATE_NS 10000

/* Return: the time that other threads took, if long enough for weir_idle_time_stalled(); else 0. */
static inline uint64_t weir_yield(uint64_t *now_ns)
{
	uint64_t before_ns = weir_now_ns();

	sched_yield();
	*now_ns = weir_now_ns();
	return *now_ns - before_ns > WEIR_IDLE_TIME_STALL_NS ? *now_ns - before_ns : 0;
}

#endif
