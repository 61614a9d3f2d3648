/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The names of volumes of pools, and maps as the module takes them. */
#ifndef WEIR_APPS_BLK_AGENT_POOL_MAP_H
#define WEIR_APPS_BLK_AGENT_POOL_MAP_H

#include "apps/blk/blk.h"
#include "core/pool/map.h"
#include "lib/base/error.h"

/* Splits POOL/VOLUME at the last slash. Return: whether both are there. */
bool blk_pool_split(const char *name, char pool[static WEIR_BLK_POOL_MAX + 1], const char **volume);

/* Whether a donor on the command line is POOL/VOLUME. */
bool blk_pool_is_name(const char *text);

/**
 * struct blk_pool_map - a map for the module
 * @first, @count: the groups of the volume's table
 * @member: names donors by their index here
 */
struct blk_pool_map {
	uint16_t first, count;
	uint32_t nr_donors, nr_members;
	struct weir_blk_pool_donor donor[WEIR_BLK_POOL_DONORS_MAX];
	struct weir_blk_member member[WEIR_BLK_MEMBERS_MAX];
};

/**
 * blk_pool_map_write() - translate a map for the module
 * @map: has the volume's table
 * @volume: of @map
 * @was_blank: the volume had no data when it was opened
 * @to: receives the map
 * @error: may be NULL
 *
 * Return: 0; -E2BIG the module cannot use so many donors or members; -EINVAL a bad address.
 */
int blk_pool_map_write(const struct weir_pool_map *map, const struct weir_pool_volume *volume,
		       bool was_blank, struct blk_pool_map *to, struct weir_error *error);

/* Return: the donor of an incarnation, or WEIR_POOL_NO_DONOR. */
uint16_t blk_pool_map_donor(const struct weir_pool_map *map, uint64_t incarnation);

#endif
