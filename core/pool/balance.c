/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/pool/balance.h"
#include "core/pool/placement.h"

/**
 * struct balance - a search for a move
 * @map: the map
 * @load: places of each donor once all moves under way are done
 * @is_usable: whether a donor may get places
 * @found: a move is in @group, @member and @donor: from the member to the donor
 */
struct balance {
	const struct weir_pool_map *map;
	uint32_t load[WEIR_POOL_DONORS_MAX];
	bool is_usable[WEIR_POOL_DONORS_MAX];
	bool found;
	uint16_t group, donor;
	uint8_t member;
};

static void count_loads(struct balance *b)
{
	for (uint16_t i = 0; i < weir_pool_map_groups(b->map); i++) {
		const struct weir_pool_group *group = &b->map->group[i];

		for (uint8_t j = 0; group->version && j < group->nr_members; j++) {
			if (group->member[j].state != WEIR_POOL_OUT &&
			    !weir_pool_group_has_successor(group, j))
				b->load[group->member[j].donor]++;
		}
	}
	for (uint16_t i = 0; i < b->map->nr_donors; i++)
		b->is_usable[i] = weir_pool_placement_may_get(b->map, i);
}

/* Whether all members serve and are there, so that the group may move. */
static bool is_settled(const struct weir_pool_map *map, const struct weir_pool_group *group)
{
	bool all_serve = group->version && weir_pool_group_is_whole(group) &&
			 group->nr_members < WEIR_POOL_MEMBERS_MAX;

	for (uint8_t i = 0; all_serve && i < group->nr_members; i++)
		all_serve = group->member[i].state == WEIR_POOL_SERVING &&
			    weir_pool_map_is_present(map, &group->member[i]);
	return all_serve;
}

/* Compares a / x with b / y. Return: less than 0, 0, or more. */
static int compare(uint64_t a, uint64_t x, uint64_t b, uint64_t y)
{
	return a * y < b * x ? -1 : a * y > b * x;
}

static uint64_t units_of(const struct balance *b, uint16_t donor)
{
	return weir_pool_placement_units(&b->map->donor[donor]);
}

/* Whether a move lowers the sum: (load - 1/2) / memory falls there by more than it rises here. */
static bool is_useful(const struct balance *b, uint16_t from, uint16_t to)
{
	return b->load[from] && compare(2 * b->load[from] - 1, units_of(b, from),
					2 * b->load[to] + 1, units_of(b, to)) > 0;
}

/* Whether the move beats the one found. Of equal moves, the first is kept. */
static bool is_better(const struct balance *b, uint16_t from, uint16_t to)
{
	uint16_t old = b->map->group[b->group].member[b->member].donor;
	int order;

	if (!b->found)
		return true;
	order = compare(b->load[from], units_of(b, from), b->load[old], units_of(b, old));
	if (!order)
		order = compare(b->load[b->donor], units_of(b, b->donor), b->load[to],
				units_of(b, to));
	return order > 0;
}

static void try_group(struct balance *b, uint16_t number)
{
	const struct weir_pool_group *group = &b->map->group[number];

	if (!is_settled(b->map, group))
		return;
	for (uint8_t i = 0; i < group->nr_members; i++) {
		uint16_t from = group->member[i].donor;

		for (uint16_t to = 0; to < b->map->nr_donors; to++) {
			if (!b->is_usable[to] || !is_useful(b, from, to) ||
			    !is_better(b, from, to) ||
			    !weir_pool_placement_has_room(b->map, group, i, to))
				continue;
			b->found = true;
			b->group = number;
			b->member = i;
			b->donor = to;
		}
	}
}

bool weir_pool_balance_next(const struct weir_pool_map *map, struct weir_pool_op *op)
{
	struct balance b = { .map = map };
	struct weir_pool_group *group;

	count_loads(&b);
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++)
		try_group(&b, i);
	if (!b.found)
		return false;
	memset(op, 0, sizeof(*op));
	op->kind = WEIR_POOL_PUT_GROUP;
	op->index = b.group;
	op->expected = map->group[b.group].stored;
	op->group = map->group[b.group];
	group = &op->group;
	group->version++;
	group->member[group->nr_members++] = (struct weir_pool_member){
		.donor = b.donor,
		.shard = group->member[b.member].shard,
		.state = WEIR_POOL_SYNCING,
		.incarnation = map->donor[b.donor].incarnation,
		.joined = group->version,
	};
	return true;
}

unsigned int weir_pool_balance_moving(const struct weir_pool_map *map)
{
	unsigned int moving = 0;

	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		if (map->group[i].version)
			moving += weir_pool_group_count(&map->group[i], WEIR_POOL_SYNCING);
	}
	return moving;
}
