/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Between two polls: whom we wait for may want this very CPU. */
#ifndef WEIR_LIB_BASE_YIELD_H
#define WEIR_LIB_BASE_YIELD_H

#include <sched.h>

#include "core/poll/idle_time.h"
#include "lib/base/clock.h"

/* What finding a thread asleep costs, at the most, on small virtual machines. */
#define WEIR_WAKE_NS 100000

/*
 * A session would rather poll for so long than be asleep when something comes. It is more than a
 * wake-up costs: who sleeps holds up its user, too, and what that would submit next. What it slept
 * through looked longer by WEIR_LATE_NS at least.
 */
#define WEIR_AWAKE_NS 250000
#define WEIR_LATE_NS 10000

/* Return: how long others took, if that was a stall: see weir_idle_time_stalled(); otherwise 0. */
static inline uint64_t weir_yield(uint64_t *now_ns)
{
	uint64_t before_ns = weir_now_ns();

	sched_yield();
	*now_ns = weir_now_ns();
	return *now_ns - before_ns > WEIR_IDLE_TIME_STALL_NS ? *now_ns - before_ns : 0;
}

#endif
