/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/fs/holding.h"
#include "apps/common/cmd.h"
#include "apps/mount/pool/link.h"
#include "apps/pool/pool.h"

#include <stdio.h>
#include <string.h>

/* Each extent of a volume lies at the members of one group. */
static void count_bytes(const struct weir_pool_map *map, const struct weir_pool_volume *volume,
			uint64_t bytes[WEIR_POOL_DONORS_MAX])
{
	uint64_t nr = (volume->bytes + volume->extent_bytes - 1) / volume->extent_bytes;

	for (uint64_t extent = 0; extent < nr; extent++) {
		const struct weir_pool_group *group =
			&map->group[weir_pool_map_group(map, volume, extent)];

		for (uint8_t i = 0; i < group->nr_members; i++) {
			if (group->member[i].state != WEIR_POOL_OUT)
				bytes[group->member[i].donor] +=
					volume->extent_bytes / volume->scheme.data;
		}
	}
}

static void note_donors(const struct weir_pool_map *map, const struct weir_pool_volume *volume,
			struct holding *holding)
{
	uint64_t bytes[WEIR_POOL_DONORS_MAX] = { 0 };

	count_bytes(map, volume, bytes);
	for (uint16_t i = 0; i < map->nr_donors; i++) {
		struct holding_donor *donor = &holding->donors[holding->nr];

		if (!bytes[i])
			continue;
		snprintf(donor->name, sizeof(donor->name), "%s", map->donor[i].id);
		snprintf(donor->address, sizeof(donor->address), "%s", map->donor[i].address);
		donor->state = pool_donor_state(map, i);
		donor->bytes = bytes[i];
		holding->nr++;
	}
}

static int ask_pool(const char *cmd, const struct fs_place *place, struct holding *holding)
{
	struct pool_session session = { 0 };
	const struct weir_pool_volume *volume;
	char pool[sizeof(place->donor)], *name;
	int status;

	snprintf(pool, sizeof(pool), "%s", place->donor);
	name = strrchr(pool, '/');
	if (!name)
		return failure(cmd, "%s: expected POOL/VOLUME", place->donor);
	*name++ = 0;
	status = pool_session_open(&session, cmd, pool);
	if (status)
		return status;
	volume = weir_pool_map_volume(session.map, name);
	if (!volume) {
		status = failure(cmd, "pool %s has no volume %s", pool, name);
	} else {
		holding->copies = weir_pool_width(volume->scheme) / volume->scheme.data;
		if (weir_pool_map_is_ready(session.map, volume->scheme))
			note_donors(session.map, volume, holding);
	}
	pool_session_close(&session);
	return status;
}

int holding_find(const char *cmd, const struct fs_place *place, struct holding *holding)
{
	*holding = (struct holding){ .copies = 1, .is_pool = link_is_pool(place->donor) };
	if (holding->is_pool)
		return ask_pool(cmd, place, holding);
	holding->nr = 1;
	snprintf(holding->donors[0].name, sizeof(holding->donors[0].name), "%.*s",
		 (int)WEIR_POOL_NAME_MAX - 1, place->donor);
	holding->donors[0].state = "-";
	return EXIT_OK;
}
