/* SPDX-License-Identifier: GPL-2.0-only */
/* Fills replicas that came anew: reads a chunk from one that is valid, and writes it there. */
#ifndef WEIR_KERNEL_BLK_FILL_H
#define WEIR_KERNEL_BLK_FILL_H

struct weir_blk_volume;
struct weir_fill;

/* The memory of a chunk. Return: 0; -ENOMEM. */
int weir_fill_alloc(struct weir_fill **fill);
void weir_fill_free(struct weir_fill *fill);

/* All that is to be filled, until nothing is, or something fails. Context: the volume's work. */
void weir_fill(struct weir_blk_volume *volume);

#endif
