/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A group's next state is a function of the map: first members that have what they need become
 * SERVING, then members that have failed become OUT, then empty places get donors. A step makes at
 * most one version of a group.
 *
 * Promotion comes first, and looks at the group as stored: a member that joins in this step cannot
 * be promoted by it.
 */
#include "core/pool/coordinator.h"
#include "core/pool/placement.h"

/**
 * struct group_step - the next state of a group
 * @c: the coordinator
 * @map: the map
 * @number: number of the group
 * @now_ns: time
 * @has_data: volumes of the scheme that have data
 * @group: the group, changed in place
 * @has_changed: it differs from the map's
 */
struct group_step {
	const struct weir_pool_coordinator *c;
	const struct weir_pool_map *map;
	uint16_t number;
	uint64_t now_ns;
	uint16_t has_data;
	struct weir_pool_group group;
	bool has_changed;
};

void weir_pool_coordinator_begin(struct weir_pool_coordinator *c, uint32_t lease_ms,
				 uint64_t now_ns)
{
	c->judges_ns = now_ns + lease_ms * WEIR_NS_PER_MS / 2;
}

static bool is_same_scheme(struct weir_pool_scheme a, struct weir_pool_scheme b)
{
	return a.data == b.data && a.spare == b.spare;
}

uint16_t weir_pool_map_count_data(const struct weir_pool_map *map, struct weir_pool_scheme scheme)
{
	uint16_t count = 0;

	for (uint16_t i = 0; i < map->nr_volumes; i++)
		count += !map->volume[i].is_blank && is_same_scheme(map->volume[i].scheme, scheme);
	return count;
}

static void remove_member(struct group_step *s, uint8_t index)
{
	struct weir_pool_group *group = &s->group;

	group->nr_members--;
	memmove(&group->member[index], &group->member[index + 1],
		(group->nr_members - index) * sizeof(group->member[0]));
	memset(&group->member[group->nr_members], 0, sizeof(group->member[0]));
	s->has_changed = true;
}

static void set_member(struct group_step *s, uint8_t index, uint8_t shard, uint16_t donor)
{
	s->group.member[index] = (struct weir_pool_member){
		.donor = donor,
		.shard = shard,
		.state = WEIR_POOL_SYNCING,
		.incarnation = s->map->donor[donor].incarnation,
		.joined = s->group.version + 1,
	};
	if (index == s->group.nr_members)
		s->group.nr_members++;
	s->has_changed = true;
}

static bool is_outcast(const struct group_step *s, const struct weir_pool_member *m)
{
	return s->c->is_outcast[m->donor] && weir_pool_map_is_present(s->map, m);
}

/* Whether the memory is gone for sure: the donor has started again. */
static bool is_replaced(const struct group_step *s, const struct weir_pool_member *m)
{
	uint64_t incarnation = s->map->donor[m->donor].incarnation;

	return incarnation && incarnation != m->incarnation;
}

static bool is_gone(const struct group_step *s, const struct weir_pool_member *m)
{
	return !s->map->donor[m->donor].incarnation && s->now_ns >= s->c->judges_ns;
}

/* Promotes @index. A draining member of the same shard has handed over, and leaves. */
static void promote_member(struct group_step *s, uint8_t index)
{
	uint8_t shard = s->group.member[index].shard;

	s->group.member[index].state = WEIR_POOL_SERVING;
	s->has_changed = true;
	for (uint8_t i = s->group.nr_members; i-- > 0;) {
		if (i != index && s->group.member[i].shard == shard &&
		    s->group.member[i].state == WEIR_POOL_SERVING)
			remove_member(s, i);
	}
}

/* Whether each volume of the scheme that has data has reported it at the member. */
static bool has_all_data(const struct group_step *s, const struct weir_pool_member *m)
{
	for (uint16_t i = 0; i < s->map->nr_volumes; i++) {
		const struct weir_pool_volume *volume = &s->map->volume[i];

		if (!volume->is_blank && is_same_scheme(volume->scheme, s->group.scheme) &&
		    !weir_pool_member_is_synced(m, i))
			return false;
	}
	return true;
}

static void promote(struct group_step *s)
{
	/* A volume may have got data between the read and the last change: read again first. */
	if (s->group.stored > s->map->revision)
		return;
	for (uint8_t i = 0; i < s->group.nr_members; i++) {
		const struct weir_pool_member *m = &s->group.member[i];

		if (m->state != WEIR_POOL_SYNCING || !weir_pool_map_is_present(s->map, m) ||
		    is_outcast(s, m) || !has_all_data(s, m) ||
		    (weir_pool_group_is_lost(&s->group) && s->has_data))
			continue;
		promote_member(s, i);
		return; /* members may have moved: the next step looks at the others */
	}
}

/* Makes members OUT for which @is_bad holds; @needed: also those without which data is lost. */
static void exclude(struct group_step *s,
		    bool (*is_bad)(const struct group_step *s, const struct weir_pool_member *m),
		    bool needed)
{
	for (uint8_t i = 0; i < s->group.nr_members; i++) {
		struct weir_pool_member *m = &s->group.member[i];
		uint8_t serving = weir_pool_group_count(&s->group, WEIR_POOL_SERVING);

		if (m->state == WEIR_POOL_OUT || !is_bad(s, m))
			continue;
		if (m->state == WEIR_POOL_SERVING && !needed && serving == s->group.scheme.data)
			continue;
		m->state = WEIR_POOL_OUT;
		s->has_changed = true;
	}
}

/* Return: whether a member other than an OUT one has the shard. */
static bool is_covered(const struct weir_pool_group *group, uint8_t shard)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		if (group->member[i].shard == shard && group->member[i].state != WEIR_POOL_OUT)
			return true;
	}
	return false;
}

/* Whether the same incarnation may register again: then its entry must tell that it is OUT. */
static bool may_return(const struct group_step *s, const struct weir_pool_member *m)
{
	if (s->map->donor[m->donor].incarnation)
		return s->map->donor[m->donor].incarnation == m->incarnation;
	for (uint16_t i = 0; i < weir_pool_map_groups(s->map); i++) {
		const struct weir_pool_group *group = &s->map->group[i];

		for (uint8_t j = 0; group->version && j < group->nr_members; j++) {
			if (group->member[j].donor == m->donor &&
			    group->member[j].incarnation == m->incarnation &&
			    group->member[j].state == WEIR_POOL_SERVING)
				return true;
		}
	}
	return false;
}

/* Removes OUT members whose place is taken and who cannot return. */
static void forget(struct group_step *s)
{
	for (uint8_t i = s->group.nr_members; i-- > 0;) {
		const struct weir_pool_member *m = &s->group.member[i];

		if (m->state == WEIR_POOL_OUT && is_covered(&s->group, m->shard) &&
		    !may_return(s, m))
			remove_member(s, i);
	}
}

/* Whether the donor's next incarnation is there, and may have the place. */
static bool has_returned(const struct group_step *s, uint8_t index)
{
	const struct weir_pool_member *m = &s->group.member[index];

	return is_replaced(s, m) && weir_pool_placement_allows(s->map, &s->group, index, m->donor);
}

/*
 * An OUT member of the shard, or the end of the list: one whose donor has returned, or else the
 * last.
 */
static uint8_t find_out(const struct group_step *s, uint8_t shard)
{
	uint8_t last = s->group.nr_members;

	for (uint8_t i = s->group.nr_members; i-- > 0;) {
		const struct weir_pool_member *m = &s->group.member[i];

		if (m->shard != shard || m->state != WEIR_POOL_OUT)
			continue;
		if (has_returned(s, i))
			return i;
		if (last == s->group.nr_members)
			last = i;
	}
	return last;
}

static bool still_waits(const struct group_step *s, const struct weir_pool_member *m)
{
	const struct weir_pool_donor *donor = &s->map->donor[m->donor];

	/* A donor that has come back where it must not stand is not waited for. */
	return !donor->is_draining && !is_replaced(s, m) &&
	       s->now_ns < s->c->since_ns[s->number] + s->map->replace_ms * WEIR_NS_PER_MS;
}

/* Gives the place of a shard that nobody has to its donor's next incarnation, or to another. */
static void fill_shard(struct group_step *s, uint8_t shard)
{
	uint8_t old = find_out(s, shard);
	const struct weir_pool_member *m = &s->group.member[old];
	uint16_t donor;

	if (old < s->group.nr_members) {
		if (has_returned(s, old)) {
			set_member(s, old, shard, m->donor);
			return;
		}
		/* The step that makes a member OUT leaves its place to wait, from then on. */
		if (s->has_changed || still_waits(s, m))
			return;
	}
	donor = weir_pool_placement_choose(s->map, s->number, &s->group, old);
	if (donor == WEIR_POOL_NO_DONOR)
		return;
	if (old < s->group.nr_members && may_return(s, m))
		old = s->group.nr_members;
	if (old < WEIR_POOL_MEMBERS_MAX)
		set_member(s, old, shard, donor);
}

static void fill(struct group_step *s)
{
	if (weir_pool_group_is_lost(&s->group) && s->has_data)
		return;
	for (uint8_t shard = 0; shard < weir_pool_width(s->group.scheme); shard++) {
		if (!is_covered(&s->group, shard))
			fill_shard(s, shard);
	}
}

/* Finds successors for members on draining donors. */
static void drain(struct group_step *s)
{
	uint8_t count = s->group.nr_members;

	for (uint8_t i = 0; i < count; i++) {
		const struct weir_pool_member *m = &s->group.member[i];
		bool is_serving = m->state == WEIR_POOL_SERVING;
		uint16_t donor;

		if (m->state == WEIR_POOL_OUT || !s->map->donor[m->donor].is_draining ||
		    (is_serving && weir_pool_group_has_successor(&s->group, i)) ||
		    (is_serving && s->group.nr_members == WEIR_POOL_MEMBERS_MAX))
			continue;
		donor = weir_pool_placement_choose(s->map, s->number, &s->group, i);
		if (donor != WEIR_POOL_NO_DONOR)
			set_member(s, is_serving ? s->group.nr_members : i, m->shard, donor);
	}
}

static void begin_step(struct group_step *s, const struct weir_pool_coordinator *c,
		       const struct weir_pool_map *map, uint16_t number, uint64_t now_ns)
{
	s->c = c;
	s->map = map;
	s->number = number;
	s->now_ns = now_ns;
	s->group = map->group[number];
	s->has_data = weir_pool_map_count_data(map, s->group.scheme);
	s->has_changed = false;
}

/* Return: whether the group changes. */
static bool step_group(struct group_step *s, uint64_t wall_ms)
{
	/* Before a promotion makes use of the group again: a donor may count on being out. */
	if (weir_pool_group_is_lost(&s->group))
		exclude(s, is_outcast, false);
	promote(s);
	exclude(s, is_replaced, true);
	exclude(s, is_gone, false);
	exclude(s, is_outcast, false);
	fill(s);
	drain(s);
	forget(s);
	if (!s->has_changed)
		return false;
	s->group.version++;
	if (weir_pool_group_is_whole(&s->group))
		s->group.lean_ms = 0;
	else if (!s->group.lean_ms)
		s->group.lean_ms = wall_ms;
	return true;
}

static void observe(struct weir_pool_coordinator *c, const struct weir_pool_map *map,
		    uint64_t now_ns)
{
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		if (c->seen[i] == map->group[i].version)
			continue;
		c->seen[i] = map->group[i].version;
		c->since_ns[i] = now_ns;
	}
}

/* Once for all groups: an incarnation that is OUT anywhere is OUT wherever it is not needed. */
static void find_outcasts(struct weir_pool_coordinator *c, const struct weir_pool_map *map)
{
	for (uint16_t i = 0; i < map->nr_donors; i++)
		c->is_outcast[i] = map->donor[i].incarnation &&
				   map->donor[i].failed == map->donor[i].incarnation;
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		const struct weir_pool_group *group = &map->group[i];

		for (uint8_t j = 0; group->version && j < group->nr_members; j++) {
			if (group->member[j].state == WEIR_POOL_OUT &&
			    weir_pool_map_is_present(map, &group->member[j]))
				c->is_outcast[group->member[j].donor] = true;
		}
	}
}

static bool next_group(struct weir_pool_coordinator *c, const struct weir_pool_map *map,
		       uint64_t now_ns, uint64_t wall_ms, struct weir_pool_op *op)
{
	struct group_step step;

	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		if (!map->group[i].version)
			continue;
		begin_step(&step, c, map, i, now_ns);
		if (!step_group(&step, wall_ms))
			continue;
		op->kind = WEIR_POOL_PUT_GROUP;
		op->index = i;
		op->expected = map->group[i].stored;
		op->group = step.group;
		return true;
	}
	return false;
}

/* A volume whose scheme has no table yet wants one. */
static bool next_table(const struct weir_pool_map *map, struct weir_pool_op *op)
{
	uint16_t first = weir_pool_map_groups(map);

	if (map->nr_tables == WEIR_POOL_TABLES_MAX ||
	    first + map->table_groups > (int)WEIR_POOL_GROUPS_MAX)
		return false;
	for (uint16_t i = 0; i < map->nr_volumes; i++) {
		if (weir_pool_map_table(map, map->volume[i].scheme))
			continue;
		op->kind = WEIR_POOL_PUT_TABLE;
		op->index = map->nr_tables;
		op->expected = 0;
		op->table = (struct weir_pool_table){ map->volume[i].scheme, first,
						      map->table_groups };
		return true;
	}
	return false;
}

static bool next_new_group(const struct weir_pool_map *map, struct weir_pool_op *op)
{
	for (uint16_t i = 0; i < map->nr_tables; i++) {
		const struct weir_pool_table *table = &map->table[i];

		for (uint16_t j = 0; j < table->count; j++) {
			uint16_t number = (uint16_t)(table->first + j);

			if (map->group[number].version)
				continue;
			if (weir_pool_placement_make(map, number, table->scheme, &op->group))
				break;
			op->kind = WEIR_POOL_PUT_GROUP;
			op->index = number;
			op->expected = 0;
			return true;
		}
	}
	return false;
}

/* A report about an incarnation that is gone has done its work. */
static bool next_report(const struct weir_pool_map *map, struct weir_pool_op *op)
{
	for (uint16_t i = 0; i < map->nr_donors; i++) {
		if (!map->donor[i].failed || map->donor[i].failed == map->donor[i].incarnation)
			continue;
		op->kind = WEIR_POOL_DROP_FAILED;
		op->index = i;
		op->expected = map->donor[i].failed_stored;
		return true;
	}
	return false;
}

bool weir_pool_coordinator_next(struct weir_pool_coordinator *c, const struct weir_pool_map *map,
				uint64_t now_ns, uint64_t wall_ms, struct weir_pool_op *op)
{
	memset(op, 0, sizeof(*op));
	observe(c, map, now_ns);
	find_outcasts(c, map);
	return next_group(c, map, now_ns, wall_ms, op) || next_table(map, op) ||
	       next_new_group(map, op) || next_report(map, op);
}

void weir_pool_coordinator_did(struct weir_pool_map *map, const struct weir_pool_op *op,
			       uint64_t stored)
{
	switch (op->kind) {
	case WEIR_POOL_PUT_TABLE:
		map->table[map->nr_tables++] = op->table;
		break;
	case WEIR_POOL_PUT_GROUP:
		map->group[op->index] = op->group;
		map->group[op->index].stored = stored;
		break;
	case WEIR_POOL_DROP_FAILED:
		map->donor[op->index].failed = 0;
		map->donor[op->index].failed_stored = 0;
		break;
	}
}

uint64_t weir_pool_coordinator_deadline_ns(const struct weir_pool_coordinator *c,
					   const struct weir_pool_map *map, uint64_t now_ns)
{
	uint64_t deadline_ns = c->judges_ns > now_ns ? c->judges_ns : WEIR_POOL_NEVER;

	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		uint64_t ends_ns = c->since_ns[i] + map->replace_ms * WEIR_NS_PER_MS;

		if (!map->group[i].version ||
		    !weir_pool_group_count(&map->group[i], WEIR_POOL_OUT) || ends_ns <= now_ns)
			continue;
		if (ends_ns < deadline_ns)
			deadline_ns = ends_ns;
	}
	return deadline_ns;
}
