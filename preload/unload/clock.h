/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef WEIR_PRELOAD_UNLOAD_CLOCK_H
#define WEIR_PRELOAD_UNLOAD_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* CPU time of the calling thread. */
static inline uint64_t clock_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

#endif
