/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The store, the coordinators and the donors of a pool, and the checks of the promises. */
#include "sim/hunt/pool/pool_world.h"

#define CALM_STEPS 12000
#define LEASE_MS 1000
#define REPLACE_MS 3000
#define STEP_NS 100000000ull

uint32_t pool_below(struct pool_world *w, uint32_t n)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (uint32_t)(w->random * 2685821657736338717ull >> 33) % n;
}

bool pool_expect(struct pool_world *w, bool holds, const char *what)
{
	if (!holds && !w->why)
		w->why = what;
	return holds;
}

/* FNV-1a, over numbers. */
void pool_note(struct pool_world *w, const char *what, uint64_t a, uint64_t b)
{
	const uint64_t numbers[] = { (uint64_t)what[0], a, b, w->truth.revision };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		w->digest = (w->digest ^ numbers[i]) * 0x100000001b3ull;
	if (w->on_event)
		w->on_event(w->now_ns, what, a, b);
}

/* Copies only what is in use, because a map is large. The rest of @to has been zero all along. */
bool pool_read_map(const struct pool_world *w, struct weir_pool_map *to)
{
	const struct weir_pool_map *from = &w->truth;

	if (w->is_away)
		return false;
	memcpy(to, from, offsetof(struct weir_pool_map, group));
	memcpy(to->group, from->group, POOL_GROUPS * sizeof(to->group[0]));
	memcpy(to->volume, from->volume, POOL_VOLUMES * sizeof(to->volume[0]));
	for (int g = 0; g < POOL_GROUPS; g++) {
		struct weir_pool_group *group = &to->group[g];

		for (uint8_t i = 0; i < group->nr_members; i++) {
			struct weir_pool_member *m = &group->member[i];

			memset(m->synced, 0, sizeof(m->synced));
			for (uint16_t v = 0; v < POOL_VOLUMES; v++) {
				if (!to->volume[v].is_blank &&
				    w->synced[v][g][m->donor] == m->joined)
					weir_pool_member_set_synced(m, v);
			}
		}
	}
	return true;
}

void pool_world_begin(struct pool_world *w, uint64_t seed, struct pool_counts *counts)
{
	static const char *const domains[POOL_DONORS] = { "r1", "r1", "r2", "r2", "r3", "r4" };
	char id[] = "a";

	*w = (struct pool_world){ .random = seed * 0x9e3779b97f4a7c15ull + 1,
				  .counts = counts,
				  .digest = 0xcbf29ce484222325ull };
	weir_pool_map_init(&w->truth);
	w->truth.stored = 1;
	w->truth.lease_ms = LEASE_MS;
	w->truth.replace_ms = REPLACE_MS;
	w->truth.table_groups = POOL_GROUPS;
	w->perils = 1 + pool_below(w, 30);
	for (int d = 0; d < POOL_DONORS; d++, id[0]++) {
		weir_pool_map_add_donor(&w->truth, id);
		memcpy(w->truth.donor[d].domain, domains[d], 3);
		w->truth.donor[d].bytes = 1 << 30;
	}
	w->truth.nr_volumes = POOL_VOLUMES;
	for (int v = 0; v < POOL_VOLUMES; v++) {
		struct weir_pool_volume *volume = &w->truth.volume[v];

		*volume = (struct weir_pool_volume){ .bytes = 1, .extent_bytes = 1 };
		volume->name[0] = (char)('v' + v);
		volume->is_blank = true;
		volume->scheme = (struct weir_pool_scheme){ 1, 1 };
	}
	if (seed % 3 == 1)
		w->truth.volume[0].scheme = w->truth.volume[1].scheme =
			(struct weir_pool_scheme){ 2, 1 };
	if (seed % 3 == 2)
		w->truth.volume[0].scheme.spare = w->truth.volume[1].scheme.spare = 2;
}

bool pool_is_alive(const struct pool_world *w, const struct weir_pool_member *m)
{
	return w->donor[m->donor].is_up && w->donor[m->donor].incarnation == m->incarnation;
}

/* The promise that all is about. */
static void check_members(struct pool_world *w)
{
	for (int g = 0; g < POOL_GROUPS; g++) {
		const struct weir_pool_group *group = &w->truth.group[g];

		for (uint8_t i = 0; i < group->nr_members; i++) {
			const struct weir_pool_member *m = &group->member[i];

			if (m->state != WEIR_POOL_SERVING || !pool_is_alive(w, m))
				continue;
			for (int v = 0; v < POOL_VOLUMES; v++)
				pool_expect(w,
					    w->donor[m->donor].memory[g][v] >= w->completed[g][v],
					    "a serving member lacks a completed write");
		}
	}
}

/* Members that hold different shards stand in different domains. */
static void check_domains(struct pool_world *w, const struct weir_pool_group *group)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		for (uint8_t j = 0; j < i; j++) {
			const struct weir_pool_member *a = &group->member[i];
			const struct weir_pool_member *b = &group->member[j];

			if (a->state == WEIR_POOL_OUT || b->state == WEIR_POOL_OUT)
				continue;
			pool_expect(w, a->donor != b->donor, "a donor is twice in a group");
			if (a->shard == b->shard)
				pool_expect(w, a->state != b->state, "two members are one shard");
			else
				pool_expect(w,
					    strcmp(w->truth.donor[a->donor].domain,
						   w->truth.donor[b->donor].domain) != 0,
					    "two shards are in one failure domain");
		}
	}
}

/* A group loses data only with memory: a member that leaves has lost its own. */
static void check_loss(struct pool_world *w, const struct weir_pool_group *old,
		       const struct weir_pool_group *new)
{
	uint8_t alive = 0;

	if (!weir_pool_group_is_lost(new) || weir_pool_group_is_lost(old) || !old->version)
		return;
	for (uint8_t i = 0; i < old->nr_members; i++)
		alive += old->member[i].state == WEIR_POOL_SERVING &&
			 pool_is_alive(w, &old->member[i]);
	pool_expect(w, alive < old->scheme.data, "a group loses data that is there");
	pool_note(w, "lost", (uint64_t)(old - w->truth.group), new->version);
	w->counts->lost++;
}

/* The store: makes the change if the versions are as the coordinator has read them. */
static bool put(struct pool_world *w, const struct pool_leader *l, const struct weir_pool_op *op)
{
	struct weir_pool_group *group = &w->truth.group[op->index];

	if (w->is_away || w->truth.leader_stored != l->token)
		return false;
	if (op->kind == WEIR_POOL_PUT_GROUP) {
		if (group->stored != op->expected)
			return false;
		pool_expect(w, op->group.version == group->version + 1,
			    "a version does not grow by one");
		pool_note(w, "group", op->index, op->group.version);
		check_domains(w, &op->group);
		check_loss(w, group, &op->group);
		w->counts->promoted += weir_pool_group_count(&op->group, WEIR_POOL_SERVING) >
				       weir_pool_group_count(group, WEIR_POOL_SERVING);
	}
	if (op->kind == WEIR_POOL_PUT_TABLE && w->truth.nr_tables)
		return false;
	if (op->kind == WEIR_POOL_DROP_FAILED &&
	    w->truth.donor[op->index].failed_stored != op->expected)
		return false;
	w->truth.revision++;
	weir_pool_coordinator_did(&w->truth, op, w->truth.revision);
	return true;
}

/* Takes the leader's key by a map of any age, if the key is as that map has it. */
static void campaign(struct pool_world *w, struct pool_leader *l)
{
	uint16_t self = (uint16_t)(l - w->leader);

	if (w->is_away || !weir_pool_map_may_lead(&l->map, self) ||
	    l->map.leader_stored != w->truth.leader_stored)
		return;
	w->counts->deposed += w->truth.leader_stored != 0;
	pool_note(w, "lead", self, w->truth.revision);
	w->truth.leader = self;
	w->truth.leader_stored = l->token = ++w->truth.revision;
	pool_read_map(w, &l->map);
	weir_pool_coordinator_begin(&l->c, LEASE_MS, w->now_ns);
}

/* The first donors run a coordinator each, which may be stopped for any time. */
static void lead(struct pool_world *w, struct pool_leader *l)
{
	struct weir_pool_op op;

	if (!pool_below(w, 3))
		pool_read_map(w, &l->map);
	campaign(w, l);
	if (!l->token)
		return;
	for (uint32_t i = pool_below(w, 4); i > 0; i--) {
		if (!weir_pool_coordinator_next(&l->c, &l->map, w->now_ns, 1, &op))
			return;
		if (put(w, l, &op)) {
			weir_pool_coordinator_did(&l->map, &op, w->truth.revision);
		} else {
			w->counts->refused++;
			pool_read_map(w, &l->map);
		}
	}
}

static void register_donor(struct pool_world *w, uint16_t d)
{
	w->donor[d].has_lease = true;
	w->truth.donor[d].incarnation = w->donor[d].incarnation;
	w->truth.donor[d].stored = ++w->truth.revision;
	pool_note(w, "join", d, w->donor[d].incarnation);
}

static void start_donor(struct pool_world *w, uint16_t d)
{
	memset(w->donor[d].memory, 0, sizeof(w->donor[d].memory));
	memset(w->donor[d].epoch, 0, sizeof(w->donor[d].epoch));
	w->donor[d].is_up = true;
	w->donor[d].incarnation = ++w->incarnations;
	register_donor(w, d);
}

static void end_lease(struct pool_world *w, uint16_t d)
{
	w->donor[d].has_lease = false;
	w->truth.donor[d].incarnation = 0;
	w->truth.revision++;
	pool_note(w, "silent", d, 0);
}

/* A donor that starts again of its own accord takes no data with it. */
static void check_restart(struct pool_world *w, uint16_t d)
{
	pool_expect(w, !weir_pool_map_is_serving(&w->truth, d, w->donor[d].incarnation),
		    "a donor that serves starts again");
}

/* A donor does what weir serve does: see weir_pool_map_may_restart(). */
static void live(struct pool_world *w, uint16_t d)
{
	struct pool_donor *donor = &w->donor[d];
	uint32_t peril = w->is_calm ? UINT32_MAX : pool_below(w, 1000);
	/* The donor may have read its map long ago. */
	const struct weir_pool_map *old = pool_below(w, 2) ? &w->truth : &w->client[0].map;

	if (w->is_away && (!donor->is_up || peril >= w->perils))
		return;
	if (!donor->is_up) {
		if (donor->has_lease && pool_below(w, 2))
			end_lease(w, d);
		else if (w->is_calm || !pool_below(w, 10))
			start_donor(w, d);
	} else if (peril < w->perils) {
		donor->is_up = false;
		pool_note(w, "die", d, donor->incarnation);
	} else if (peril < 2 * w->perils && donor->has_lease) {
		end_lease(w, d);
	} else if (!donor->has_lease) {
		if (weir_pool_map_is_serving(&w->truth, d, donor->incarnation))
			register_donor(w, d);
		else
			start_donor(w, d);
	} else if (weir_pool_map_may_restart(old, d, donor->incarnation)) {
		check_restart(w, d);
		start_donor(w, d);
	}
	if (!w->is_calm && !w->is_away && !pool_below(w, 300))
		w->truth.donor[d].is_draining = !w->truth.donor[d].is_draining;
}

const struct weir_pool_member *pool_find_member(const struct weir_pool_group *group, uint16_t d)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		if (group->member[i].donor == d && group->member[i].state != WEIR_POOL_OUT)
			return &group->member[i];
	}
	return NULL;
}

/* After a loss the operator removes the volumes, and makes them again: others, without data. */
static void make_volumes_again(struct pool_world *w)
{
	bool is_lost = false;

	for (int g = 0; g < POOL_GROUPS; g++)
		is_lost |= w->truth.group[g].version && weir_pool_group_is_lost(&w->truth.group[g]);
	if (!is_lost || w->is_away || !w->truth.nr_tables || pool_below(w, 50))
		return;
	for (int v = 0; v < POOL_VOLUMES; v++) {
		w->truth.volume[v].is_blank = true;
		pool_client_close(w, &w->client[v], v);
		w->rebuilder[v].is_active = false;
		memset(w->synced[v], 0, sizeof(w->synced[v]));
		for (int g = 0; g < POOL_GROUPS; g++)
			w->completed[g][v] = 0;
	}
	for (int d = 0; d < POOL_DONORS; d++)
		memset(w->donor[d].memory, 0, sizeof(w->donor[d].memory));
	w->truth.revision++;
	w->counts->renewed++;
}

/* An operator's command: it knows a map of now, and needs no leader. */
static void rebalance(struct pool_world *w)
{
	struct weir_pool_op op;

	if (w->is_away || pool_below(w, w->is_calm ? 40 : 20) ||
	    !weir_pool_balance_next(&w->truth, &op))
		return;
	check_domains(w, &op.group);
	w->truth.revision++;
	weir_pool_coordinator_did(&w->truth, &op, w->truth.revision);
	pool_note(w, "move", op.index, op.group.version);
	w->counts->moved++;
}

/* The store loses its majority for a while. */
static void come_and_go(struct pool_world *w)
{
	if (w->is_calm || pool_below(w, w->is_away ? 40 : 400))
		return;
	w->is_away = !w->is_away;
	w->counts->outages += w->is_away;
	pool_note(w, w->is_away ? "away" : "back", 0, 0);
}

static void step(struct pool_world *w)
{
	uint32_t who = pool_below(w, 4);

	w->now_ns += STEP_NS / 4 + pool_below(w, STEP_NS);
	if (!who)
		live(w, (uint16_t)pool_below(w, POOL_DONORS));
	else if (who == 1)
		lead(w, &w->leader[pool_below(w, POOL_LEADERS)]);
	else if (who == 2)
		pool_client_step(w, (int)pool_below(w, POOL_VOLUMES));
	else
		pool_rebuilder_step(w, (int)pool_below(w, POOL_VOLUMES));
	if (!w->is_away && !pool_below(w, w->is_calm ? 200 : 40))
		w->truth.leader_stored = 0;
	come_and_go(w);
	rebalance(w);
	make_volumes_again(w);
	check_members(w);
}

void pool_world_run(struct pool_world *w, uint32_t steps)
{
	for (uint32_t i = 0; i < steps && !w->why; i++)
		step(w);
}

static void check_end(struct pool_world *w, uint16_t drained)
{
	for (int g = 0; g < POOL_GROUPS; g++) {
		const struct weir_pool_group *group = &w->truth.group[g];

		pool_expect(w, group->version > 0, "a group was never laid out");
		if (weir_pool_group_is_lost(group))
			continue;
		pool_expect(w,
			    weir_pool_group_is_whole(group) && !group->lean_ms &&
				    group->nr_members == weir_pool_width(group->scheme),
			    "a group does not become whole");
		for (uint8_t i = 0; i < group->nr_members; i++)
			pool_expect(w, pool_is_alive(w, &group->member[i]),
				    "a member of a whole group is dead");
		pool_expect(w, !pool_find_member(group, drained), "a donor is not drained");
		w->counts->drained++;
	}
	for (int d = 0; d < POOL_DONORS; d++)
		pool_expect(w, !w->truth.donor[d].failed, "a report is never dropped");
}

/* One domain is enough less than there are: one drained donor must find room elsewhere. */
void pool_world_calm_down(struct pool_world *w)
{
	uint16_t drained = (uint16_t)pool_below(w, POOL_DONORS);

	w->is_calm = true;
	w->is_away = false;
	for (int d = 0; d < POOL_DONORS; d++)
		w->truth.donor[d].is_draining = d == drained;
	pool_world_run(w, CALM_STEPS);
	if (!w->why)
		check_end(w, drained);
}
