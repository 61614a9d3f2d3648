/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Chooses donors for groups: the least loaded for its memory; among equals the donor that shares
 * the fewest groups with the members chosen so far, so that many donors rebuild one that fails.
 * The order of donors in the map has no influence.
 *
 * Context of all: any; externally serialised.
 */
#ifndef WEIR_CORE_POOL_PLACEMENT_H
#define WEIR_CORE_POOL_PLACEMENT_H

#include "core/pool/map.h"

/**
 * weir_pool_placement_choose() - find a donor for a member
 * @map: the map
 * @number: number of the group
 * @group: the group so far
 * @replaced: index of the member that the new one replaces; or @group->nr_members
 *
 * The donor is registered, not draining and no outcast. It is no member, and in a failure domain
 * without another member that holds or awaits data.
 *
 * Return: its index, or WEIR_POOL_NO_DONOR.
 */
uint16_t weir_pool_placement_choose(const struct weir_pool_map *map, uint16_t number,
				    const struct weir_pool_group *group, uint8_t replaced);

/* Return: whether @donor may replace member @replaced, as above, though it was a member before. */
bool weir_pool_placement_allows(const struct weir_pool_map *map,
				const struct weir_pool_group *group, uint8_t replaced,
				uint16_t donor);

/* Return: whether a donor may get places at all: registered, not draining, and no outcast. */
bool weir_pool_placement_may_get(const struct weir_pool_map *map, uint16_t donor);

/* Return: whether @donor, which is no member, stands in a domain without another than @replaced. */
bool weir_pool_placement_has_room(const struct weir_pool_map *map,
				  const struct weir_pool_group *group, uint8_t replaced,
				  uint16_t donor);

/* Return: the memory that loads are compared by; at least 1. */
uint64_t weir_pool_placement_units(const struct weir_pool_donor *donor);

/**
 * weir_pool_placement_make() - choose the members of a new group
 * @map: the map
 * @number: number of the group
 * @scheme: its scheme
 * @group: receives version 1, all members SERVING
 *
 * Return: 0; -ENOSPC too few donors or failure domains.
 */
int weir_pool_placement_make(const struct weir_pool_map *map, uint16_t number,
			     struct weir_pool_scheme scheme, struct weir_pool_group *group);

#endif
