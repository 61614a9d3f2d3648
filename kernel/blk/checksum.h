/* SPDX-License-Identifier: GPL-2.0-only */
/* Checksums of pages: CRC32C, as core/volume/volume.h wants them. */
#ifndef WEIR_KERNEL_BLK_CHECKSUM_H
#define WEIR_KERNEL_BLK_CHECKSUM_H

#include <linux/scatterlist.h>

/* Of each of the @pages pages that @sgl holds. Context: any; allocates nothing. */
void weir_blk_checksum_make(struct scatterlist *sgl, u32 pages, u32 *sums);

/*
 * Makes those pages of @sgl zeroes that should be NOTHING, and looks at the others.
 *
 * Context: any; allocates nothing. Return: whether they are what they should be.
 */
bool weir_blk_checksum_check(struct scatterlist *sgl, u32 pages, const u32 *expected);

#endif
