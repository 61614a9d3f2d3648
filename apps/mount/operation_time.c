/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/operation_time.h"

#include "core/base/rng.h"

#define GAP_MAX 127 /* from one that is timed to the next: 64 on average */

/* The first operation of a thread is timed. */
bool operation_time_is_due(void)
{
	static _Thread_local uint64_t random;
	static _Thread_local uint32_t left;

	if (left && --left)
		return false;
	if (!random)
		random = weir_now_ns() ^ (uintptr_t)&random;
	left = 1 + (uint32_t)weir_rng_scale(weir_rng_next(&random), GAP_MAX);
	return true;
}

void operation_time_add(struct operation_time *time, enum operation_kind kind, uint64_t begun_ns)
{
	uint64_t taken_ns = weir_now_ns() - begun_ns;

	pthread_mutex_lock(&time->lock);
	weir_histogram_add(&time->page->duration_ns[kind], taken_ns);
	pthread_mutex_unlock(&time->lock);
}
