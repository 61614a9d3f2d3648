/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The clock of all deadlines: CLOCK_MONOTONIC. */
#ifndef WEIR_LIB_BASE_CLOCK_H
#define WEIR_LIB_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "core/base/platform.h"

static inline uint64_t weir_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * WEIR_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* CPU time of the calling thread, ns. */
static inline uint64_t weir_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * WEIR_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* The time @ns after @now_ns; saturates at UINT64_MAX, which means never. */
static inline uint64_t weir_after_ns(uint64_t now_ns, uint64_t ns)
{
	return ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + ns;
}

/* The deadline of a wait that begins now. 0: do not wait; UINT64_MAX: wait for ever. */
static inline uint64_t weir_deadline_ns(uint64_t timeout_ns)
{
	return timeout_ns ? weir_after_ns(weir_now_ns(), timeout_ns) : 0;
}

/* Remaining time; 1 if the deadline has passed, because 0 means "do not wait". */
static inline uint64_t weir_left_ns(uint64_t deadline_ns)
{
	uint64_t now_ns;

	if (!deadline_ns || deadline_ns == UINT64_MAX)
		return deadline_ns;
	now_ns = weir_now_ns();
	return deadline_ns > now_ns ? deadline_ns - now_ns : 1;
}

static inline struct timespec weir_timespec(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / WEIR_NS_PER_S), (long)(ns % WEIR_NS_PER_S) };

	return t;
}

/* Sleeps until the time of weir_now_ns(); a signal may end the sleep. */
static inline void weir_sleep_until_ns(uint64_t until_ns)
{
	struct timespec until = weir_timespec(until_ns);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Time until @deadline_ns for poll(2), rounded up; -1 means for ever. */
static inline int weir_poll_ms(uint64_t deadline_ns)
{
	uint64_t now_ns = weir_now_ns(), ms;

	if (deadline_ns == UINT64_MAX)
		return -1;
	if (deadline_ns <= now_ns)
		return 0;
	ms = (deadline_ns - now_ns + WEIR_NS_PER_MS - 1) / WEIR_NS_PER_MS;
	return ms > 3600000 ? 3600000 : (int)ms;
}

#endif
