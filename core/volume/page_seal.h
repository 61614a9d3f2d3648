/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Seals of encrypted pages. The host encrypts each page that it writes, with a nonce and the page's
 * number, and sends the ciphertext alone. The volume keeps nonce and tag of the newest contents of
 * each page, as it keeps checksums. So a donor can neither read a page, nor alter, exchange or
 * restore one unnoticed, and needs no byte more than without.
 *
 * A nonce is taken once for the key, before the page is encrypted. All replicas of a write get the
 * same ciphertext, and so does a later try at a replica. A write that is encrypted again takes new
 * nonces.
 *
 * Reads and writes of a page take effect in the order pushed by the host. So the host records the
 * seals when it pushes the write, with weir_extents_write(), and a reader takes them when it pushes
 * the read, with weir_extents_expect().
 *
 * The sum of an encrypted page is derived from its nonce, not from its contents: it tells whether
 * the page is NOTHING or UNKNOWN, and writes of one page apart. Of an UNKNOWN page the seal is that
 * of the write that failed: the page can be read if the write has reached the replica.
 *
 * Copies to new replicas and to a local disk move ciphertext. They need the key only to verify it.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_VOLUME_PAGE_SEAL_H
#define WEIR_CORE_VOLUME_PAGE_SEAL_H

#include "core/base/platform.h"

#define WEIR_PAGE_TAG_BYTES 16u

struct weir_extents;
struct weir_extents_write;

/* @nonce: with which the page was encrypted; 0: never. @tag: of the cipher */
struct weir_page_seal {
	uint64_t nonce;
	uint8_t tag[WEIR_PAGE_TAG_BYTES];
};

/**
 * weir_page_seal_nonces() - take nonces for pages about to be encrypted
 * @v: the volume
 * @pages: how many
 *
 * Return: the first of @pages numbers in a row, not 0, that were never returned before.
 */
uint64_t weir_page_seal_nonces(struct weir_extents *v, uint32_t pages);

/* The sum of a page encrypted with this nonce: even and not 0. See page_sum.h. */
uint32_t weir_page_seal_sum(uint64_t nonce);

/* A write has begun at @v, pushed with pages of these seals: one for each page of @w. */
void weir_page_seal_written(struct weir_extents *v, const struct weir_extents_write *w,
			    const struct weir_page_seal *seals);

/* The seals of @pages pages, for a read pushed now. A page whose sum is NOTHING needs none. */
void weir_page_seal_expect(const struct weir_extents *v, uint32_t extent, uint32_t page,
			   uint32_t pages, struct weir_page_seal *seals);

#endif
