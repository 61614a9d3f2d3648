/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "core/volume/page_digest.h"
#include "core/volume/page_sum.h"
#include "lib/volume/checksum.h"

int weir_volume_checksum_new_key(struct weir_volume_checksum_key *key)
{
	if (sodium_init() < 0)
		return -EIO;
	randombytes_buf(key, sizeof(*key));
	return 0;
}

uint32_t weir_volume_checksum(const struct weir_volume_checksum_key *key, uint64_t number,
			      const void *page)
{
	struct weir_page_digest digest;
	uint64_t hash;

	weir_page_digest_begin(&digest, number);
	weir_page_digest_add(&digest, key->digest, 0, page, WEIR_VOLUME_PAGE_BYTES);
	crypto_shorthash((unsigned char *)&hash, (const unsigned char *)&digest, sizeof(digest),
			 key->hash);
	return weir_page_sum(hash);
}

bool weir_volume_checksum_accept(const struct weir_volume_checksum_key *key, uint64_t number,
				 void *page, uint32_t expected)
{
	if (!weir_page_sum_is_zeroes(expected))
		return weir_page_sum_fits(expected, weir_volume_checksum(key, number, page));
	memset(page, 0, WEIR_VOLUME_PAGE_BYTES);
	return true;
}
