/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A counter that any thread changes and any thread reads. It orders nothing: a reader may see one
 * counter's change before an earlier one of another. Context of all: any thread.
 */
#ifndef WEIR_LIB_BASE_COUNTER_H
#define WEIR_LIB_BASE_COUNTER_H

#include <stdint.h>

static inline uint64_t weir_counter_read(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static inline void weir_counter_add(uint64_t *counter, uint64_t by)
{
	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

/* Makes the counter @value, if it is less. */
static inline void weir_counter_raise(uint64_t *counter, uint64_t value)
{
	uint64_t old = weir_counter_read(counter);

	while (old < value &&
	       !__atomic_compare_exchange_n(counter, &old, value, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

#endif
