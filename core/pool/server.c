/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/pool/server.h"

#include "core/base/rng.h"

bool weir_pool_server_is_missing(const struct weir_pool_map *map,
				 const struct weir_pool_volume *volume)
{
	if (!volume->is_files || !weir_pool_map_is_ready(map, volume->scheme))
		return false;
	return !volume->holder || volume->is_rebuilding || weir_pool_map_is_abandoned(map, volume);
}

/* Whether the donor's incarnation takes new work. */
static bool is_at_work(const struct weir_pool_donor *donor)
{
	return donor->incarnation && !donor->is_draining && donor->failed != donor->incarnation;
}

/* How many donors are before this one. */
static uint16_t find_rank(const struct weir_pool_map *map, const struct weir_pool_volume *volume,
			  uint64_t incarnation)
{
	uint64_t own = weir_rng_mix(volume->id ^ incarnation);
	uint16_t rank = 0;

	for (uint16_t i = 0; i < map->nr_donors; i++) {
		const struct weir_pool_donor *donor = &map->donor[i];

		if (is_at_work(donor) && donor->incarnation != volume->server_incarnation)
			rank += weir_rng_mix(volume->id ^ donor->incarnation) < own;
	}
	return rank;
}

uint64_t weir_pool_server_from_ns(const struct weir_pool_map *map,
				  const struct weir_pool_volume *volume, const char *donor,
				  uint64_t incarnation, uint64_t since_ns)
{
	uint16_t index = weir_pool_map_donor(map, donor);
	bool is_suspect = volume->holder && volume->suspect == volume->holder &&
			  volume->server_incarnation == incarnation;

	if (index == WEIR_POOL_NO_DONOR || map->donor[index].incarnation != incarnation ||
	    !is_at_work(&map->donor[index]) || is_suspect)
		return UINT64_MAX;
	return since_ns + find_rank(map, volume, incarnation) * WEIR_POOL_SERVER_RANK_NS;
}
