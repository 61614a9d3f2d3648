/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The donor's memory by holder: the amount of each holder, and the holder of each part. */
#ifndef WEIR_APPS_SERVE_WEB_MEMORY_MAP_H
#define WEIR_APPS_SERVE_WEB_MEMORY_MAP_H

#include "lib/donor/view/holdings.h"

#include <stdbool.h>

#define MAP_CELLS_MAX 512
#define MAP_HOLDERS_MAX 64

/**
 * struct map_holder - extents of one client, or of one kind and tenant
 * @of: one of the extents, which tells the holder
 * @first: index of its first extent in the sorted holdings
 * @extents, @bytes: how many, and their sum
 */
struct map_holder {
	struct weir_holding of;
	size_t first, extents;
	uint64_t bytes;
};

/**
 * struct memory_map - a map
 * @holder: @nr_holders, the largest first
 * @has_others: the last one stands for all further holders
 * @cell: @nr_cells parts of the memory by address: the index of the holder of the largest extent
 *	there, or -1
 * @cell_bytes: length of a part; the last may be shorter
 */
struct memory_map {
	struct map_holder *holder;
	unsigned int nr_holders;
	bool has_others;
	int cell[MAP_CELLS_MAX];
	unsigned int nr_cells;
	uint64_t cell_bytes;
};

/*
 * memory_map_make(): sorts the extents of @holdings. The caller owes a memory_map_free(). Return:
 * 0; -ENOMEM.
 */
int memory_map_make(struct memory_map *map, struct weir_holdings *holdings);
void memory_map_free(struct memory_map *map);

#endif
