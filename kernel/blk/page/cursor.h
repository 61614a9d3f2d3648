/* SPDX-License-Identifier: GPL-2.0-only */
/* A page of the device may start and end anywhere in memory, in several pieces of whole sectors. */
#ifndef WEIR_KERNEL_BLK_PAGE_CURSOR_H
#define WEIR_KERNEL_BLK_PAGE_CURSOR_H

#include <linux/minmax.h>
#include <linux/scatterlist.h>
#include <linux/string.h>

#define WEIR_BLK_PAGE_PIECES (PAGE_SIZE / SECTOR_SIZE)

struct weir_blk_cursor {
	struct scatterlist *sg;
	unsigned int offset;
};

/* Returns the next piece, at most *@bytes long; stores the length there. */
static inline void *weir_blk_cursor_next(struct weir_blk_cursor *cursor, unsigned int *bytes)
{
	void *piece = sg_virt(cursor->sg) + cursor->offset;

	*bytes = min(*bytes, cursor->sg->length - cursor->offset);
	cursor->offset += *bytes;
	if (cursor->offset == cursor->sg->length)
		*cursor = (struct weir_blk_cursor){ .sg = sg_next(cursor->sg) };
	return piece;
}

static inline void weir_blk_cursor_clear_page(struct weir_blk_cursor *cursor)
{
	unsigned int left = PAGE_SIZE;

	while (left) {
		unsigned int bytes = left;
		void *piece = weir_blk_cursor_next(cursor, &bytes);

		memset(piece, 0, bytes);
		left -= bytes;
	}
}

#endif
