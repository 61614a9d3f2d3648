/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packet sequence numbers. A wire PSN has 24 bits and wraps. Inside the transport a PSN is a
 * 64-bit number that never wraps, whose low 24 bits are the wire PSN.
 */
#ifndef WEIR_SOFTNIC_ROCE_PSN_H
#define WEIR_SOFTNIC_ROCE_PSN_H

#include <stdint.h>

enum { ROCE_PSN_BITS = 24, ROCE_PSN_MASK = 0xffffff };

/** roce_psn_first() - the first PSN of a queue pair, high enough to look back from */
static inline uint64_t roce_psn_first(uint32_t wire)
{
	return (1ull << 32) + (wire & ROCE_PSN_MASK);
}

/** roce_psn_extend() - the PSN nearest to @near whose wire PSN is @wire */
static inline uint64_t roce_psn_extend(uint32_t wire, uint64_t near)
{
	uint32_t ahead = (wire - (uint32_t)near) & ROCE_PSN_MASK;

	return near + ahead - ((uint64_t)(ahead >> (ROCE_PSN_BITS - 1)) << ROCE_PSN_BITS);
}

/** roce_psn_wire() - the low 24 bits */
static inline uint32_t roce_psn_wire(uint64_t psn)
{
	return (uint32_t)psn & ROCE_PSN_MASK;
}

#endif
