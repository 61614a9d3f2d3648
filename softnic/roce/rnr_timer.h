/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The RNR NAK timer as the transport encodes it in 5 bits (IB specification, 9.7.5).
 */
#ifndef WEIR_SOFTNIC_ROCE_RNR_TIMER_H
#define WEIR_SOFTNIC_ROCE_RNR_TIMER_H

#include <stdint.h>

/* rnr_retry with this value means no limit. */
enum { ROCE_RNR_FOR_EVER = 7 };

/** roce_rnr_ns() - the least wait of a requester after an RNR NAK with @timer */
static inline uint64_t roce_rnr_ns(uint32_t timer)
{
	/* In units of 10 us. */
	static const uint32_t units[32] = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return units[timer & 31] * 10000ull;
}

#endif
