/* SPDX-License-Identifier: GPL-2.0-only */
/* Keyed checksums of pages: see core/volume/page_digest.h. */
#ifndef WEIR_KERNEL_BLK_PAGE_CHECKSUM_H
#define WEIR_KERNEL_BLK_PAGE_CHECKSUM_H

#include <linux/scatterlist.h>
#include <linux/siphash.h>

/* Drawn at attach. It never leaves this memory, and is wiped at detach. */
struct weir_blk_checksum_key {
	u64 digest[PAGE_SIZE / sizeof(u64)];
	siphash_key_t hash;
};

/* Context: process; sleeps. Return: 0; -ERESTARTSYS: a signal came before random numbers. */
int weir_blk_checksum_new_key(struct weir_blk_checksum_key *key);

/*
 * Computes the checksum of each of the @pages pages in @sgl. @first: number of the first, in the
 * device. Context: any; allocates nothing.
 */
void weir_blk_checksum_make(const struct weir_blk_checksum_key *key, struct scatterlist *sgl,
			    u64 first, u32 pages, u32 *sums);

/*
 * Zeroes pages of @sgl whose expected value is NOTHING, and verifies the other pages.
 *
 * Context: any; allocates nothing. Return: true if all pages match.
 */
bool weir_blk_checksum_check(const struct weir_blk_checksum_key *key, struct scatterlist *sgl,
			     u64 first, u32 pages, const u32 *expected);

#endif
