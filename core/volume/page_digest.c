/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/volume/page_digest.h"

static uint64_t word_at(const char *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	return word;
}

void weir_page_digest_add(struct weir_page_digest *digest, const uint64_t *key, uint32_t offset,
			  const void *piece, uint32_t length)
{
	unsigned __int128 sum = (unsigned __int128)digest->sum[1] << 64 | digest->sum[0];
	const char *from = piece;

	key += offset / sizeof(*key);
	for (; length; length -= WEIR_PAGE_DIGEST_UNIT) {
		uint64_t first = word_at(from) + key[0];
		uint64_t second = word_at(from + 8) + key[1];

		sum += (unsigned __int128)first * second;
		from += WEIR_PAGE_DIGEST_UNIT;
		key += 2;
	}
	digest->sum[0] = (uint64_t)sum;
	digest->sum[1] = (uint64_t)(sum >> 64);
}
