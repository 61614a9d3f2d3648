/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A rate limit without a lock or timer: each send advances a virtual time, and a sender ahead of
 * the clock waits. Unused time is kept for WEIR_MUX_RATE_LIMIT_KEPT_NS.
 */
#ifndef WEIR_LIB_MUX_LOCAL_RATE_LIMIT_H
#define WEIR_LIB_MUX_LOCAL_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_MUX_RATE_LIMIT_KEPT_NS 1000000

/* @bytes_s: 0: no limit. @paid_ns: the virtual time. Both atomic. */
struct weir_mux_rate_limit {
	uint64_t bytes_s;
	uint64_t paid_ns;
};

/* Return: when more may be sent; now if 0 or in the past. Context: any thread. */
static inline uint64_t weir_mux_rate_limit_due_ns(const struct weir_mux_rate_limit *r)
{
	if (!__atomic_load_n(&r->bytes_s, __ATOMIC_RELAXED))
		return 0;
	return __atomic_load_n(&r->paid_ns, __ATOMIC_RELAXED);
}

/* Charges @bytes sent, at most 1 GiB. Context: any thread. */
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
 * Sets another limit and forgives the debt under the last one. The limit is stored first: a
 * thread still using the old limit finds @paid_ns changed and retries. Context: any thread.
 */
static inline void weir_mux_rate_limit_set(struct weir_mux_rate_limit *r, uint64_t bytes_s)
{
	__atomic_store_n(&r->bytes_s, bytes_s, __ATOMIC_RELAXED);
	__atomic_store_n(&r->paid_ns, 0, __ATOMIC_RELEASE);
}

#endif
