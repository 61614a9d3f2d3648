// SPDX-License-Identifier: GPL-2.0-only
/* Maps, as the agent sends them: nothing of them is trusted. */
#include <linux/slab.h>

#include "kernel/blk/pool/pool.h"

void weir_blk_map_free(struct weir_blk_map *map)
{
	if (!map)
		return;
	kvfree(map->member);
	kvfree(map->group);
	kvfree(map);
}

static int check_donors(const struct weir_blk_map *map, struct kweir_error *error)
{
	u32 i, j;

	for (i = 0; i < map->nr_donors; i++) {
		if (!map->donor[i].incarnation)
			return kweir_fail(error, -EINVAL, "donor %u has no incarnation", i);
		for (j = 0; j < i; j++) {
			if (map->donor[i].incarnation == map->donor[j].incarnation)
				return kweir_fail(error, -EINVAL, "donor %u is there twice", i);
		}
	}
	return 0;
}

/* No donor holds two copies of a group: both would end with it. */
static bool is_sound(const struct weir_blk_map *map, u32 index)
{
	const struct weir_blk_member *m = &map->member[index];
	u32 count = 1;

	if (m->group >= map->nr_groups || m->donor >= map->nr_donors || !m->joined)
		return false;
	for (; index && map->member[index - 1].group == m->group; index--, count++) {
		if (map->member[index - 1].donor == m->donor)
			return false;
	}
	return count <= WEIR_MEMBERS_MAX && (!index || map->member[index - 1].group < m->group);
}

static int check_members(const struct weir_blk_map *map, struct kweir_error *error)
{
	u32 i;

	for (i = 0; i < map->nr_members; i++) {
		if (!is_sound(map, i))
			return kweir_fail(error, -EINVAL, "member %u of the map is malformed", i);
	}
	return 0;
}

int weir_blk_map_new(const struct weir_blk_pool_donor *donors, u32 nr_donors,
		     const struct weir_blk_member *members, u32 nr_members, u32 nr_groups,
		     struct weir_blk_map **out, struct kweir_error *error)
{
	struct weir_blk_map *map;
	int rc;

	if (nr_donors > WEIR_BLK_POOL_DONORS_MAX || nr_members > WEIR_BLK_MEMBERS_MAX)
		return kweir_fail(error, -EINVAL, "%u donors and %u members: at most %u and %u",
				  nr_donors, nr_members, WEIR_BLK_POOL_DONORS_MAX,
				  WEIR_BLK_MEMBERS_MAX);
	map = kvzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return kweir_fail(error, -ENOMEM, "no memory for the map");
	map->nr_donors = nr_donors;
	map->nr_members = nr_members;
	map->nr_groups = nr_groups;
	memcpy(map->donor, donors, nr_donors * sizeof(*donors));
	memset(map->target, WEIR_MEMBERS_NO_DONOR, sizeof(map->target));
	map->member = kvmalloc_array(nr_members + 1, sizeof(*map->member), GFP_KERNEL);
	map->group = kvcalloc(nr_groups, sizeof(*map->group), GFP_KERNEL);
	if (!map->member || !map->group) {
		weir_blk_map_free(map);
		return kweir_fail(error, -ENOMEM, "no memory for the map");
	}
	memcpy(map->member, members, nr_members * sizeof(*members));
	rc = check_donors(map, error);
	if (!rc)
		rc = check_members(map, error);
	if (rc)
		weir_blk_map_free(map);
	else
		*out = map;
	return rc;
}
