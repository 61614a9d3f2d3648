/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The expected contents of a page. The host computes a CRC of each page that it writes; this file
 * says which values are checksums, and which pages a reader may use.
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

/* The checksum of a page with this CRC: even and not 0. */
static inline uint32_t weir_page_sum(uint32_t crc)
{
	return crc & ~1u ? crc & ~1u : 2;
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
