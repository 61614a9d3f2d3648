/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The expected contents of a page. The host computes a keyed checksum of each page that it writes,
 * by core/volume/page_digest.h; this file says which values are checksums, and which pages a reader
 * may use.
 *
 * A sum is that of the newest contents. So an older page of the same number differs from it like
 * any other page, and the digest needs no generation. Bytes chosen without the key have the
 * expected sum with a probability of 2^-31. Each try that fails is a mismatch, counted and logged.
 *
 * Context of all: any; never sleeps.
 */
#ifndef WEIR_CORE_VOLUME_PAGE_SUM_H
#define WEIR_CORE_VOLUME_PAGE_SUM_H

#include "core/base/platform.h"

/* Other even values are checksums. */
#define WEIR_SUM_NOTHING 0u /* zeroes: never written, or discarded */
#define WEIR_SUM_UNKNOWN 1u /* the last write failed, or was not seen */
#define WEIR_SUM_FRESH 1u /* flag on a checksum: the page reverts to NOTHING if this write fails */

/* The checksum of a page, from SipHash of its digest: even and not 0. */
static inline uint32_t weir_page_sum(uint64_t hash)
{
	uint32_t sum = (uint32_t)(hash & UINT32_MAX) & ~1u;

	return sum ? sum : 2;
}

/* Whether the page must be filled with zeroes, whatever was read. */
static inline bool weir_page_sum_is_zeroes(uint32_t expected)
{
	return expected == WEIR_SUM_NOTHING;
}

/* Whether a page with the checksum @sum is as expected, or nothing is known of it. */
static inline bool weir_page_sum_fits(uint32_t expected, uint32_t sum)
{
	return expected == sum || expected == WEIR_SUM_UNKNOWN;
}

#endif
