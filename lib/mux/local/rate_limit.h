/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ceiling on a rate, without a lock and without a timer of its own: what has been sent is
 * paid for in time, and who is ahead of the clock waits until it has caught up. What has not
 * been used is kept for WEIR_MUX_RATE_LIMIT_KEPT_NS.
 */
#ifndef WEIR_LIB_MUX_LOCAL_RATE_LIMIT_H
#define WEIR_LIB_MUX_LOCAL_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_MUX_RATE_LIMIT_KEPT_NS 1000000

/* @bytes_s: 0: there is no ceiling. @paid_ns: up to when what was sent is paid for. Atomic. */
struct weir_mux_rate_limit {
	uint64_t bytes_s;
	uint64_t paid_ns;
};

/* Return: when more may be sent: 0 or a time that is over: now. Context: any thread. */
static inline uint64_t weir_mux_rate_limit_due_ns(const struct weir_mux_rate_limit *r)
{
	if (!__atomic_load_n(&r->bytes_s, __ATOMIC_RELAXED))
		return 0;
	return __atomic_load_n(&r->paid_ns, __ATOMIC_RELAXED);
}

/* @bytes have been sent, at most 1 GiB. Context: any thread. */
static inline void weir_mux_rate_limit_charge(struct weir_mux_rate_limit *r, uint32_t bytes,
					      uint64_t now_ns)
{
	uint64_t paid_ns = __atomic_load_n(&r->paid_ns, __ATOMIC_ACQUIRE), from_ns, bytes_s;

	do {
		bytes_s = __atomic_load_n(&r->bytes_s, __ATOMIC_RELAXED);
		if (!bytes_s)
			return;
		from_ns = now_ns > WEIR_MUX_RATE_LIMIT_KEPT_NS ?
				  now_ns - WEIR_MUX_RATE_LIMIT_KEPT_NS :
				  0;
		if (paid_ns > from_ns)
			from_ns = paid_ns;
	} while (!__atomic_compare_exchange_n(&r->paid_ns, &paid_ns,
					      from_ns + bytes * 1000000000ull / bytes_s, true,
					      __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE));
}

/*
 * Another ceiling, from now on: what was sent under the last one is paid for. First the ceiling:
 * who has still seen the last one finds another @paid_ns, and looks again. Context: any thread.
 */
static inline void weir_mux_rate_limit_set(struct weir_mux_rate_limit *r, uint64_t bytes_s)
{
	__atomic_store_n(&r->bytes_s, bytes_s, __ATOMIC_RELAXED);
	__atomic_store_n(&r->paid_ns, 0, __ATOMIC_RELEASE);
}

#endif
