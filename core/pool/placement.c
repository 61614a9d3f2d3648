/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table is made group by group, each with regard to those before: a greedy search for even
 * load and even pairs. With equal donors, loads differ by a few groups at most.
 */
#include "core/pool/placement.h"
#include "core/base/rng.h"

#define LOAD_UNIT_SHIFT 20 /* memory counts in MiB, so that products fit into 64 bits */

/* How well a donor suits: lower is better, in this order. */
struct rank {
	uint64_t load, units;
	uint32_t together;
	uint64_t hash;
};

static bool is_same_domain(const struct weir_pool_map *map, uint16_t a, uint16_t b)
{
	const char *x = map->donor[a].domain, *y = map->donor[b].domain;
	size_t length = strlen(x);

	/* The domain of a donor that is not registered is unknown: empty. */
	return length && strlen(y) == length && !memcmp(x, y, length);
}

/* Whether another member than @replaced keeps donors of its domain out. */
static bool domain_is_taken(const struct weir_pool_map *map, const struct weir_pool_group *group,
			    uint8_t replaced, uint16_t donor)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		if (i != replaced && group->member[i].state != WEIR_POOL_OUT &&
		    is_same_domain(map, group->member[i].donor, donor))
			return true;
	}
	return false;
}

static bool is_member(const struct weir_pool_group *group, uint8_t replaced, uint16_t donor)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		if (i != replaced && group->member[i].donor == donor)
			return true;
	}
	return false;
}

bool weir_pool_placement_may_get(const struct weir_pool_map *map, uint16_t index)
{
	const struct weir_pool_donor *donor = &map->donor[index];

	return donor->incarnation && !donor->is_draining &&
	       !weir_pool_map_is_outcast(map, index, donor->incarnation);
}

bool weir_pool_placement_allows(const struct weir_pool_map *map,
				const struct weir_pool_group *group, uint8_t replaced,
				uint16_t donor)
{
	return weir_pool_placement_may_get(map, donor) && !is_member(group, replaced, donor) &&
	       !domain_is_taken(map, group, replaced, donor);
}

bool weir_pool_placement_has_room(const struct weir_pool_map *map,
				  const struct weir_pool_group *group, uint8_t replaced,
				  uint16_t donor)
{
	return !is_member(group, group->nr_members, donor) &&
	       !domain_is_taken(map, group, replaced, donor);
}

uint64_t weir_pool_placement_units(const struct weir_pool_donor *donor)
{
	return (donor->bytes >> LOAD_UNIT_SHIFT) + 1;
}

static uint64_t hash_of(const char *id, uint16_t number)
{
	uint64_t hash = number;

	for (; *id; id++)
		hash = weir_rng_mix(hash * 257 + (uint8_t)*id);
	return hash;
}

/* Whether two groups have a donor in common. */
static bool meets(const struct weir_pool_group *group, const struct weir_pool_group *other)
{
	for (uint8_t i = 0; i < other->nr_members; i++) {
		if (other->member[i].state != WEIR_POOL_OUT &&
		    is_member(group, group->nr_members, other->member[i].donor))
			return true;
	}
	return false;
}

/* Counts the members of all groups, by donor; and the members of groups that meet @group. */
static void count(const struct weir_pool_map *map, const struct weir_pool_group *group,
		  uint32_t *loads, uint32_t *together)
{
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		const struct weir_pool_group *other = &map->group[i];
		bool has_met = other->version && meets(group, other);

		for (uint8_t j = 0; other->version && j < other->nr_members; j++) {
			if (other->member[j].state == WEIR_POOL_OUT)
				continue;
			loads[other->member[j].donor]++;
			together[other->member[j].donor] += has_met;
		}
	}
}

static bool is_better(const struct rank *a, const struct rank *b)
{
	uint64_t x = a->load * b->units, y = b->load * a->units;

	if (x != y)
		return x < y;
	if (a->together != b->together)
		return a->together < b->together;
	return a->hash < b->hash;
}

uint16_t weir_pool_placement_choose(const struct weir_pool_map *map, uint16_t number,
				    const struct weir_pool_group *group, uint8_t replaced)
{
	uint32_t loads[WEIR_POOL_DONORS_MAX] = { 0 }, together[WEIR_POOL_DONORS_MAX] = { 0 };
	uint16_t best = WEIR_POOL_NO_DONOR;
	struct rank best_rank = { 0 };

	count(map, group, loads, together);
	for (uint16_t i = 0; i < map->nr_donors; i++) {
		struct rank rank = {
			.load = loads[i],
			.units = weir_pool_placement_units(&map->donor[i]),
			.together = together[i],
			.hash = hash_of(map->donor[i].id, number),
		};

		if (is_member(group, group->nr_members, i) ||
		    !weir_pool_placement_allows(map, group, replaced, i))
			continue;
		if (best != WEIR_POOL_NO_DONOR && !is_better(&rank, &best_rank))
			continue;
		best = i;
		best_rank = rank;
	}
	return best;
}

int weir_pool_placement_make(const struct weir_pool_map *map, uint16_t number,
			     struct weir_pool_scheme scheme, struct weir_pool_group *group)
{
	memset(group, 0, sizeof(*group));
	group->version = 1;
	group->scheme = scheme;
	for (uint8_t i = 0; i < weir_pool_width(scheme); i++) {
		uint16_t donor = weir_pool_placement_choose(map, number, group, i);

		if (donor == WEIR_POOL_NO_DONOR)
			return -ENOSPC;
		group->member[i] = (struct weir_pool_member){
			.donor = donor,
			.shard = i,
			.state = WEIR_POOL_SERVING,
			.incarnation = map->donor[donor].incarnation,
			.joined = 1,
		};
		group->nr_members++;
	}
	return 0;
}
