/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Claims: requests that threads post at the same time, on different lanes, exclude each other if
 * they overlap and either changes memory. There is a word for each page of remote memory, by
 * hash: counts of readers and of small requests, or one writer. Small requests of one page exclude
 * each other by words for their lines, as with the intention locks of databases. Two pages or lines
 * of one hash exclude each other needlessly, which is rare. A claim changes words that mostly lie
 * in the caller's cache, and no others: about 10 ns each.
 *
 * Context of all: Any; never sleeps; lock-free.
 */
#ifndef WEIR_CORE_LANE_CLAIMS_H
#define WEIR_CORE_LANE_CLAIMS_H

#include "core/base/platform.h"

#define WEIR_CLAIMS_BITS 16
#define WEIR_CLAIMS_WORDS (1u << WEIR_CLAIMS_BITS)
#define WEIR_CLAIMS_PAGE_SHIFT 12
#define WEIR_CLAIMS_LINE_SHIFT 6
#define WEIR_CLAIMS_SMALL (1u << 8) /* bytes of a small request, at most */

/* struct weir_claims - initialised with zeros. Each word is atomic */
struct weir_claims {
	uint32_t pages[WEIR_CLAIMS_WORDS];
	uint32_t lines[WEIR_CLAIMS_WORDS];
};

/**
 * weir_claims_take() - claim the memory of a request
 * @c: the claims
 * @first: remote address
 * @length: bytes, at least 1; the range must not wrap
 * @modifies: the request changes memory
 *
 * On success the caller owes a weir_claims_give(), when the request is done.
 *
 * Return: false, with nothing claimed, if another request has claimed a page or a line, the
 *	caller's own requests included.
 */
bool weir_claims_take(struct weir_claims *c, uint64_t first, uint64_t length, bool modifies);

/* Gives back what weir_claims_take() claimed; the same arguments. */
void weir_claims_give(struct weir_claims *c, uint64_t first, uint64_t length, bool modifies);

#endif
