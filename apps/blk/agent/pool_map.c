/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/blk/agent/pool_map.h"

#include <errno.h>
#include <string.h>

#include "lib/conn/address.h"

bool blk_pool_is_name(const char *text)
{
	return !strncmp(text, "pool:", 5) || !strncmp(text, "etcd:", 5) ||
	       !strncmp(text, "file:", 5);
}

bool blk_pool_split(const char *name, char pool[static WEIR_BLK_POOL_MAX + 1], const char **volume)
{
	const char *slash = strrchr(name, '/');
	size_t length = slash ? (size_t)(slash - name) : 0;

	if (!length || !slash[1] || length > WEIR_BLK_POOL_MAX || strlen(name) > WEIR_BLK_POOL_MAX)
		return false;
	memcpy(pool, name, length);
	pool[length] = '\0';
	*volume = slash + 1;
	return true;
}

/* Most addresses are numbers, and ask no resolver. */
static int write_address(const char *address, struct weir_blk_pool_donor *donor,
			 struct weir_error *error)
{
	struct addrinfo *list;
	size_t length;
	int rc = weir_address_parse_numeric(address, &list, NULL);

	if (rc)
		rc = weir_address_resolve(address, NULL, &list, error);
	if (rc)
		return rc;
	length = list->ai_addrlen < WEIR_BLK_ADDRESS ? list->ai_addrlen : WEIR_BLK_ADDRESS;
	memcpy(donor->address, list->ai_addr, length);
	freeaddrinfo(list);
	return 0;
}

/* Adds a member's donor, unless it is there. A donor that is not registered now has no address. */
static int add_donor(const struct weir_pool_map *map, const struct weir_pool_member *m,
		     struct blk_pool_map *to, uint16_t *index, struct weir_error *error)
{
	const struct weir_pool_donor *from = &map->donor[m->donor];
	struct weir_blk_pool_donor *donor;

	for (*index = 0; *index < to->nr_donors; ++*index) {
		if (to->donor[*index].incarnation == m->incarnation)
			return 0;
	}
	if (to->nr_donors == WEIR_BLK_POOL_DONORS_MAX)
		return weir_error_set(error, -E2BIG,
				      "the volume is at more than %d donors: too many for a block "
				      "device",
				      WEIR_BLK_POOL_DONORS_MAX);
	donor = &to->donor[to->nr_donors++];
	*donor = (struct weir_blk_pool_donor){ .incarnation = m->incarnation };
	return from->incarnation == m->incarnation ? write_address(from->address, donor, error) : 0;
}

static int add_member(const struct weir_pool_map *map, uint16_t group,
		      const struct weir_pool_member *m, const struct weir_pool_volume *volume,
		      bool was_blank, struct blk_pool_map *to, struct weir_error *error)
{
	struct weir_blk_member *member = &to->member[to->nr_members];
	int rc;

	if (to->nr_members == WEIR_BLK_MEMBERS_MAX)
		return weir_error_set(error, -E2BIG, "the pool has more than %d members",
				      WEIR_BLK_MEMBERS_MAX);
	*member = (struct weir_blk_member){ .joined = m->joined, .group = group };
	if (m->state == WEIR_POOL_SERVING)
		member->flags |= WEIR_BLK_MEMBER_SERVES;
	if (weir_pool_map_may_serve(map, m, volume, was_blank))
		member->flags |= WEIR_BLK_MEMBER_COUNTS;
	rc = add_donor(map, m, to, &member->donor, error);
	to->nr_members += !rc;
	return rc;
}

int blk_pool_map_write(const struct weir_pool_map *map, const struct weir_pool_volume *volume,
		       bool was_blank, struct blk_pool_map *to, struct weir_error *error)
{
	const struct weir_pool_table *table = weir_pool_map_table(map, volume->scheme);
	int rc = 0;

	to->first = table->first;
	to->count = table->count;
	to->nr_donors = to->nr_members = 0;
	for (uint16_t i = 0; i < table->count; i++) {
		const struct weir_pool_group *group = &map->group[table->first + i];

		for (uint8_t j = 0; !rc && j < group->nr_members; j++) {
			if (group->member[j].state != WEIR_POOL_OUT)
				rc = add_member(map, i, &group->member[j], volume, was_blank, to,
						error);
		}
	}
	return rc;
}

static bool has_incarnation(const struct weir_pool_group *group, uint16_t donor,
			    uint64_t incarnation)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		if (group->member[i].donor == donor && group->member[i].incarnation == incarnation)
			return true;
	}
	return false;
}

uint16_t blk_pool_map_donor(const struct weir_pool_map *map, uint64_t incarnation)
{
	for (uint16_t i = 0; i < map->nr_donors; i++) {
		if (map->donor[i].incarnation == incarnation)
			return i;
		for (uint16_t j = 0; j < weir_pool_map_groups(map); j++) {
			if (has_incarnation(&map->group[j], i, incarnation))
				return i;
		}
	}
	return WEIR_POOL_NO_DONOR;
}
