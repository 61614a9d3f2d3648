/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/pool/rebuild.h"

#define DOUBLINGS_MAX 3u

uint64_t weir_pool_rebuild_pause_ns(uint32_t lease_ms, uint32_t failures)
{
	uint32_t doublings = failures < DOUBLINGS_MAX ? failures : DOUBLINGS_MAX;

	return (lease_ms * WEIR_NS_PER_MS / 2) << doublings;
}

/* Another donor's turn does not begin the wait again. */
static void observe(struct weir_pool_rebuild *r, const struct weir_pool_map *map, uint64_t now_ns)
{
	for (uint16_t i = 0; i < map->nr_volumes; i++) {
		const struct weir_pool_volume *volume = &map->volume[i];
		struct weir_pool_rebuild_volume *seen = &r->seen[i];

		if (seen->id != volume->id)
			*seen = (struct weir_pool_rebuild_volume){ .id = volume->id,
								   .since_ns = now_ns };
		else if (!volume->is_rebuilding &&
			 (volume->holder || seen->stored != volume->stored))
			seen->since_ns = now_ns;
		seen->stored = volume->stored;
	}
}

/* Whether a member of this donor lacks data of the volume. */
static bool lacks_data(const struct weir_pool_rebuild *r, const struct weir_pool_map *map,
		       const struct weir_pool_group *group, uint16_t volume)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (m->state == WEIR_POOL_SYNCING && m->incarnation == r->incarnation &&
		    weir_pool_map_is_present(map, m) &&
		    m->donor == weir_pool_map_donor(map, r->donor) &&
		    !weir_pool_member_is_synced(m, volume))
			return !weir_pool_group_is_lost(group);
	}
	return false;
}

static bool is_wanted(const struct weir_pool_rebuild *r, const struct weir_pool_map *map,
		      uint16_t index)
{
	const struct weir_pool_volume *volume = &map->volume[index];
	const struct weir_pool_table *table = weir_pool_map_table(map, volume->scheme);

	if (volume->is_blank || volume->holder ||
	    !weir_pool_map_is_ready(map, volume->scheme))
		return false;
	for (uint16_t i = table->first; i < table->first + table->count; i++) {
		if (lacks_data(r, map, &map->group[i], index))
			return true;
	}
	return false;
}

uint16_t weir_pool_rebuild_next(struct weir_pool_rebuild *r, const struct weir_pool_map *map,
				uint64_t now_ns, uint64_t *due_ns)
{
	observe(r, map, now_ns);
	for (uint16_t i = 0; i < map->nr_volumes; i++) {
		uint64_t from_ns = r->seen[i].since_ns +
				   weir_pool_rebuild_pause_ns(map->lease_ms, r->seen[i].failures);

		if (!is_wanted(r, map, i))
			continue;
		if (from_ns <= now_ns)
			return i;
		if (from_ns < *due_ns)
			*due_ns = from_ns;
	}
	return map->nr_volumes;
}

void weir_pool_rebuild_ended(struct weir_pool_rebuild *r, uint16_t volume,
			     enum weir_pool_rebuild_end end, uint64_t now_ns)
{
	struct weir_pool_rebuild_volume *seen = &r->seen[volume];

	if (end == WEIR_POOL_REBUILD_DONE)
		seen->failures = 0;
	if (end == WEIR_POOL_REBUILD_FAILED)
		seen->failures++;
	if (end == WEIR_POOL_REBUILD_GAVE_WAY || end == WEIR_POOL_REBUILD_FAILED)
		seen->since_ns = now_ns;
}
