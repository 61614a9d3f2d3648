/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "lib/volume/reclaim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "core/base/rng.h"
#include "lib/base/error.h"
#include "lib/pool/pin.h"
#include "lib/volume/region_name.h"

struct kept_region {
	struct weir_volume_region_name name;
	uint64_t bytes;
};

/* The donor's regions of one pool. @rc: why one could not be kept. */
struct region_list {
	struct kept_region *region;
	size_t nr, room;
	uint64_t pool;
	int rc;
};

static void list_add(void *arg, const struct weir_region_entry *entry)
{
	struct region_list *list = arg;
	struct weir_volume_region_name name;
	struct kept_region *more;

	if (list->rc || !weir_volume_region_name_parse(entry->name, &name) ||
	    name.pool != list->pool)
		return;
	if (list->nr == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		more = reallocarray(list->region, list->room, sizeof(*more));
		if (!more) {
			list->rc = -ENOMEM;
			return;
		}
		list->region = more;
	}
	list->region[list->nr++] = (struct kept_region){ name, entry->length };
}

static bool is_own(const struct weir_volume_reclaim *self, const struct weir_pool_map *map,
		   const struct weir_pool_member *m)
{
	return m->state != WEIR_POOL_OUT && m->incarnation == self->incarnation &&
	       !strcmp(map->donor[m->donor].id, self->donor);
}

static const struct weir_pool_volume *find_volume(const struct weir_pool_map *map, uint64_t id)
{
	for (uint16_t i = 0; i < map->nr_volumes; i++) {
		if (map->volume[i].id == id)
			return &map->volume[i];
	}
	return NULL;
}

enum region_use {
	USED,
	HELD, /* by nobody after the holder of the volume */
	UNUSED,
};

static enum region_use find_use(const struct weir_volume_reclaim *self,
				const struct weir_pool_map *map,
				const struct weir_volume_region_name *name)
{
	const struct weir_pool_volume *volume = find_volume(map, name->volume);
	const struct weir_pool_group *group;

	if (!volume)
		return UNUSED;
	if (!weir_pool_map_is_ready(map, volume->scheme))
		return HELD;
	group = &map->group[weir_pool_map_group(map, volume, name->extent)];
	for (uint8_t i = 0; i < group->nr_members; i++) {
		if (group->member[i].joined == name->joined && is_own(self, map, &group->member[i]))
			return USED;
	}
	return volume->holder ? HELD : UNUSED;
}

uint64_t weir_volume_reclaim_users(const struct weir_volume_reclaim *self,
				   const struct weir_pool_map *map)
{
	uint64_t users = weir_rng_mix(map->id);

	for (uint16_t i = 0; i < map->nr_volumes; i++)
		users += weir_rng_mix(map->volume[i].id); /* in any order */
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		const struct weir_pool_group *group = &map->group[i];

		for (uint8_t j = 0; j < group->nr_members; j++) {
			if (is_own(self, map, &group->member[j]))
				users += weir_rng_mix((uint64_t)i << 48 ^ group->member[j].joined);
		}
	}
	return users;
}

static void delete_unused(const struct weir_volume_reclaim *self, const struct weir_pool_map *map,
			  struct weir_session *session, const struct region_list *list,
			  struct weir_volume_reclaimed *back)
{
	char name[WEIR_REGION_NAME_MAX + 1];
	int rc;

	for (size_t i = 0; i < list->nr; i++) {
		enum region_use use = find_use(self, map, &list->region[i].name);

		back->left += use == HELD;
		if (use != UNUSED)
			continue;
		weir_volume_region_name_format(&list->region[i].name, name);
		rc = weir_region_delete(session, name, NULL);
		/* -EBUSY: its last client has no claim any more, and is about to close it. */
		back->left += rc && rc != -ENOENT;
		back->regions += !rc;
		back->bytes += rc ? 0 : list->region[i].bytes;
	}
}

/* Return: the donor's index if the map has this incarnation, else WEIR_POOL_NO_DONOR. */
static uint16_t find_self(const struct weir_volume_reclaim *self, const struct weir_pool_map *map)
{
	uint16_t donor = weir_pool_map_donor(map, self->donor);

	if (donor != WEIR_POOL_NO_DONOR && map->donor[donor].incarnation != self->incarnation)
		return WEIR_POOL_NO_DONOR;
	return donor;
}

int weir_volume_reclaim(const struct weir_volume_reclaim *self, struct weir_pool_client *client,
			struct weir_pool_map *map, struct weir_volume_reclaimed *back,
			struct weir_error *error)
{
	struct weir_session_options options = { .size = sizeof(options),
						.key = self->key,
						.device = self->device,
						.encryption = self->encryption,
						.channels = 1 };
	struct region_list list = { .pool = map->id };
	uint16_t donor = find_self(self, map);
	struct weir_session *session;
	int rc;

	*back = (struct weir_volume_reclaimed){ 0 };
	if (donor == WEIR_POOL_NO_DONOR)
		return 0;
	options.donor_identity = weir_pool_identity(&map->donor[donor]);
	rc = weir_pool_pin(map->donor[donor].id, options.donor_identity, self->key, error);
	if (!rc)
		rc = weir_session_open(map->donor[donor].address, &options, &session, error);
	if (rc)
		return rc;
	rc = weir_region_list(session, list_add, &list);
	if (!rc)
		rc = list.rc;
	if (rc)
		weir_error_set(error, rc, "cannot list regions: %s", weir_strerror(rc));
	if (!rc && list.nr)
		rc = weir_pool_client_read(client, map, error);
	if (!rc && map->id == list.pool && find_self(self, map) != WEIR_POOL_NO_DONOR)
		delete_unused(self, map, session, &list, back);
	free(list.region);
	weir_session_close(session);
	return rc;
}
