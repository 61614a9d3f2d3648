/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A keyed digest of a page: the hash NH of UMAC (Black, Halevi, Krawczyk, Krovetz and Rogaway,
 * CRYPTO '99) with words of 64 bits, and the number of the page. The host puts the digest through
 * SipHash-2-4 with another key, and keeps 31 bits of the result: core/volume/page_sum.h.
 *
 * Two different pages have the same NH with a probability of 2^-64 over the key, whoever chose
 * them. That holds for a chooser who knows nothing of the key, and nobody does: neither the key nor
 * a sum ever leaves the client. The number matters because a pair of pages whose sums are equal by
 * chance shall serve a forger once, at one place.
 *
 * NH multiplies once for 16 bytes. SipHash over the page itself costs three to eight times as much.
 *
 * Context of all: any; never sleeps.
 */
#ifndef WEIR_CORE_VOLUME_PAGE_DIGEST_H
#define WEIR_CORE_VOLUME_PAGE_DIGEST_H

#include "core/base/platform.h"

#define WEIR_PAGE_DIGEST_UNIT 16u /* bytes: pieces of a page are multiples of it */

/* @sum: NH so far, the low word first; @number: of the page. Hashed whole, so without padding. */
struct weir_page_digest {
	uint64_t sum[2];
	uint64_t number;
};

static inline void weir_page_digest_begin(struct weir_page_digest *digest, uint64_t number)
{
	*digest = (struct weir_page_digest){ .number = number };
}

/**
 * weir_page_digest_add() - add a piece of the page
 * @digest: begun
 * @key: random, as long as a page, and the same for all pages
 * @offset: of the piece in the page; a multiple of WEIR_PAGE_DIGEST_UNIT
 * @piece: the bytes, anywhere in memory
 * @length: of the piece; a multiple of WEIR_PAGE_DIGEST_UNIT
 *
 * Each byte of the page is added once, in any order.
 */
void weir_page_digest_add(struct weir_page_digest *digest, const uint64_t *key, uint32_t offset,
			  const void *piece, uint32_t length);

#endif
