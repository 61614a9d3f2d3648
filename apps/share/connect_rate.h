/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How often a party may connect: each connect is paid for in time, and who is ahead of the clock
 * waits. What has not been used is kept, so that a program which makes its connections when it
 * begins is not held up, and one that tries again and again for nothing is.
 */
#ifndef WEIR_APPS_SHARE_CONNECT_RATE_H
#define WEIR_APPS_SHARE_CONNECT_RATE_H

#include <stdint.h>

#define SHARE_CONNECT_RATE_NS 2000000ull
#define SHARE_CONNECT_RATE_KEPT 1024 /* connects */

/*
 * @paid_ns: up to when those that have been made are paid for; 0 at first.
 * Return: 0: it is taken; or when it may be.
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
