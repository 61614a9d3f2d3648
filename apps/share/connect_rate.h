/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Limits the rate of connects of a party: each connect advances a virtual time, and a party
 * ahead of the clock waits. Unused time is kept, so the burst of connects at a program's start
 * passes at once, while endless retries are slowed.
 */
#ifndef WEIR_APPS_SHARE_CONNECT_RATE_H
#define WEIR_APPS_SHARE_CONNECT_RATE_H

#include <stdint.h>

#define SHARE_CONNECT_RATE_NS 2000000ull
#define SHARE_CONNECT_RATE_KEPT 1024 /* connects */

/*
 * @paid_ns: the virtual time; 0 at first.
 * Return: 0: go ahead; or the time to try again.
 */
static inline uint64_t share_connect_rate_take(uint64_t *paid_ns, uint64_t now_ns)
{
	const uint64_t kept_ns = SHARE_CONNECT_RATE_KEPT * SHARE_CONNECT_RATE_NS;
	uint64_t from_ns = now_ns > kept_ns ? now_ns - kept_ns : 0;

	if (*paid_ns > from_ns)
		from_ns = *paid_ns;
	if (from_ns > now_ns)
		return from_ns;
	*paid_ns = from_ns + SHARE_CONNECT_RATE_NS;
	return 0;
}

#endif
