/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Claims: requests that threads post at the same time, on different lanes, exclude each other if
 * they overlap and either changes memory. A table has a word for each page of remote memory, by
 * hash: a count of readers, or one writer. Two pages of one hash exclude each other needlessly,
 * which is rare. A claim changes a word that mostly lies in the caller's cache, and no other: about
 * 10 ns.
 *
 * Context of all: Any; never sleeps; lock-free.
 */
#ifndef WEIR_CORE_LANE_CLAIMS_H
#define WEIR_CORE_LANE_CLAIMS_H

#include "core/base/platform.h"

#define WEIR_CLAIMS_BITS 16
#define WEIR_CLAIMS_WORDS (1u << WEIR_CLAIMS_BITS)
#define WEIR_CLAIMS_PAGE_SHIFT 12
#define WEIR_CLAIMS_WRITER (1u << 31)

/* struct weir_claims - initialised with zeros. @words: each atomic */
struct weir_claims {
	uint32_t words[WEIR_CLAIMS_WORDS];
};

/**
 * weir_claims_take() - claim the pages of a request
 * @c: the claims
 * @first: remote address
 * @length: bytes, at least 1; the range must not wrap
 * @modifies: the request changes memory
 *
 * On success the caller owes a weir_claims_give(), when the request is done.
 *
 * Return: false, with nothing claimed, if another request has claimed a page, the caller's own
 *	requests included.
 */
bool weir_claims_take(struct weir_claims *c, uint64_t first, uint64_t length, bool modifies);

/* Gives back what weir_claims_take() claimed; the same arguments. */
void weir_claims_give(struct weir_claims *c, uint64_t first, uint64_t length, bool modifies);

#endif
