/* SPDX-License-Identifier: GPL-2.0-only */
/* CRC32C checksums of pages, as core/volume/page_sum.h requires. */
#ifndef WEIR_KERNEL_BLK_CHECKSUM_H
#define WEIR_KERNEL_BLK_CHECKSUM_H

#include <linux/scatterlist.h>

/* Computes the checksum of each of the @pages pages in @sgl. Context: any; allocates nothing. */
void weir_blk_checksum_make(struct scatterlist *sgl, u32 pages, u32 *sums);

/*
 * Zeroes pages of @sgl whose expected value is NOTHING, and verifies the other pages.
 *
 * Context: any; allocates nothing. Return: true if all pages match.
 */
bool weir_blk_checksum_check(struct scatterlist *sgl, u32 pages, const u32 *expected);

#endif
