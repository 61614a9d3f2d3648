// SPDX-License-Identifier: GPL-2.0-only
#include <linux/random.h>

#include "core/volume/page_digest.h"
#include "core/volume/page_sum.h"
#include "kernel/blk/page/checksum.h"
#include "kernel/blk/page/cursor.h"

int weir_blk_checksum_new_key(struct weir_blk_checksum_key *key)
{
	return get_random_bytes_wait(key, sizeof(*key));
}

static u32 sum_page(const struct weir_blk_checksum_key *key, struct weir_blk_cursor *cursor,
		    u64 number)
{
	struct weir_page_digest digest;
	unsigned int done = 0;

	weir_page_digest_begin(&digest, number);
	while (done < PAGE_SIZE) {
		unsigned int bytes = PAGE_SIZE - done;
		const void *piece = weir_blk_cursor_next(cursor, &bytes);

		weir_page_digest_add(&digest, key->digest, done, piece, bytes);
		done += bytes;
	}
	return weir_page_sum(siphash(&digest, sizeof(digest), &key->hash));
}

void weir_blk_checksum_make(const struct weir_blk_checksum_key *key, struct scatterlist *sgl,
			    u64 first, u32 pages, u32 *sums)
{
	struct weir_blk_cursor cursor = { .sg = sgl };
	u32 i;

	for (i = 0; i < pages; i++)
		sums[i] = sum_page(key, &cursor, first + i);
}

bool weir_blk_checksum_check(const struct weir_blk_checksum_key *key, struct scatterlist *sgl,
			     u64 first, u32 pages, const u32 *expected)
{
	struct weir_blk_cursor cursor = { .sg = sgl };
	bool is_right = true;
	u32 i;

	for (i = 0; i < pages; i++) {
		if (weir_page_sum_is_zeroes(expected[i]))
			weir_blk_cursor_clear_page(&cursor);
		else if (!weir_page_sum_fits(expected[i], sum_page(key, &cursor, first + i)))
			is_right = false;
	}
	return is_right;
}
