// SPDX-License-Identifier: GPL-2.0-only
/* A page of the device may start and end anywhere in memory, in several pieces. */
#include <linux/crc32c.h>

#include "core/volume/page_sum.h"
#include "kernel/blk/checksum.h"

struct cursor {
	struct scatterlist *sg;
	unsigned int offset;
};

/* Returns the next piece, at most *@bytes long; stores the length there. */
static void *next_piece(struct cursor *cursor, unsigned int *bytes)
{
	void *piece = sg_virt(cursor->sg) + cursor->offset;

	*bytes = min(*bytes, cursor->sg->length - cursor->offset);
	cursor->offset += *bytes;
	if (cursor->offset == cursor->sg->length)
		*cursor = (struct cursor){ .sg = sg_next(cursor->sg) };
	return piece;
}

static u32 sum_page(struct cursor *cursor)
{
	unsigned int left = PAGE_SIZE;
	u32 crc = ~0u;

	while (left) {
		unsigned int bytes = left;
		const void *piece = next_piece(cursor, &bytes);

		crc = crc32c(crc, piece, bytes);
		left -= bytes;
	}
	return weir_page_sum(crc);
}

static void clear_page_at(struct cursor *cursor)
{
	unsigned int left = PAGE_SIZE;

	while (left) {
		unsigned int bytes = left;
		void *piece = next_piece(cursor, &bytes);

		memset(piece, 0, bytes);
		left -= bytes;
	}
}

void weir_blk_checksum_make(struct scatterlist *sgl, u32 pages, u32 *sums)
{
	struct cursor cursor = { .sg = sgl };
	u32 i;

	for (i = 0; i < pages; i++)
		sums[i] = sum_page(&cursor);
}

bool weir_blk_checksum_check(struct scatterlist *sgl, u32 pages, const u32 *expected)
{
	struct cursor cursor = { .sg = sgl };
	bool is_right = true;
	u32 i;

	for (i = 0; i < pages; i++) {
		if (weir_page_sum_is_zeroes(expected[i]))
			clear_page_at(&cursor);
		else if (!weir_page_sum_fits(expected[i], sum_page(&cursor)))
			is_right = false;
	}
	return is_right;
}
