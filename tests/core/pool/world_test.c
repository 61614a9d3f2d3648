/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: core pool world; suites: core pool; timeout: 120 */
/*
 * A pool in random interleavings. The store has versions; two coordinators have maps of any age.
 * Donors die, start again, lose their leases and are drained. Clients open each volume one after
 * another, and donors rebuild it. The memory of the donors is modelled naively: for each
 * group and volume, the number of the last write, and the latest epoch that may write. A SERVING
 * member that is alive must have each completed write; a group may lose its data only with the
 * memory; and once all is calm, each group is whole.
 *
 * The decisions of the core are those of the pool. The steps of clients and donors in lib/volume
 * are modelled here, so their mistakes are planted here, too.
 */
#include "core/pool/balance.h"
#include "core/pool/coordinator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define DONORS 6
#define VOLUMES 2
#define GROUPS 3
#define LEADERS 2
#ifndef STEPS
#define STEPS 600
#endif
#define CALM_STEPS 1200
#ifndef WORLDS
#define WORLDS 120u
#endif
#ifndef WORLDS_MAX
#define WORLDS_MAX 10000u /* until a mistake is found */
#endif
#define LEASE_MS 1000
#define REPLACE_MS 3000
#define STEP_NS 100000000ull

/* Planted in the steps of clients and donors. */
enum mistake {
	NO_MISTAKE,
	REPORTS_WITHOUT_A_CLAIM,
	REBUILDS_WITHOUT_A_FENCE,
	OPENS_WITHOUT_REPORTED_MEMBERS,
	WRITES_BEFORE_COPIES_ARE_EQUAL,
	NR_MISTAKES,
};

struct pool_donor {
	bool is_up, has_lease;
	uint64_t incarnation;
	uint32_t memory[GROUPS][VOLUMES];
	uint64_t epoch[GROUPS][VOLUMES];
};

/*
 * A write goes to the members that the client knows; a bit for each donor that has it. @filled: by
 * group and donor, the membership that has all data. @is_open: by group.
 */
struct pool_client {
	struct weir_pool_map map;
	bool has_claim, is_open[GROUPS], is_writing, was_blank;
	uint64_t epoch;
	uint64_t filled[GROUPS][DONORS];
	uint16_t group;
	uint32_t number, has;
	uint64_t incarnations[DONORS];
};

/* A donor that has a volume open. @value is on its way to a member. */
struct pool_rebuilder {
	struct weir_pool_map map;
	bool is_active, is_copying, has_copied;
	uint64_t epoch, joined, incarnation;
	uint16_t donor, group;
	uint32_t value;
};

struct pool_leader {
	struct weir_pool_coordinator c;
	struct weir_pool_map map;
	uint64_t token; /* version of the leader's key as it won it */
};

struct pool_world {
	uint64_t random, now_ns, incarnations;
	struct weir_pool_map truth;
	struct pool_donor donor[DONORS];
	struct pool_client client[VOLUMES];
	struct pool_rebuilder rebuilder[VOLUMES];
	uint64_t claim[VOLUMES]; /* version of the claim's key; 0: nobody has the volume */
	struct pool_leader leader[LEADERS];
	uint64_t synced[VOLUMES][GROUPS][DONORS]; /* the membership reported */
	uint32_t completed[GROUPS][VOLUMES];
	uint32_t perils;
	bool is_calm, has_lost_write;
	enum mistake mistake;
};

/* Of all worlds: what must have happened for the test to mean something. */
static struct {
	uint32_t writes, lost, renewed, promoted, drained, refused, rebuilt, fenced, taken_over,
		moved, deposed;
} counts;

static uint32_t below(struct pool_world *w, uint32_t n)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (uint32_t)(w->random * 2685821657736338717ull >> 33) % n;
}

/* Copies only what is in use, because a map is large. The rest of @to has been zero all along. */
static void copy_map(const struct pool_world *w, struct weir_pool_map *to)
{
	const struct weir_pool_map *from = &w->truth;

	memcpy(to, from, offsetof(struct weir_pool_map, group));
	memcpy(to->group, from->group, GROUPS * sizeof(to->group[0]));
	memcpy(to->volume, from->volume, VOLUMES * sizeof(to->volume[0]));
	for (int g = 0; g < GROUPS; g++) {
		struct weir_pool_group *group = &to->group[g];

		for (uint8_t i = 0; i < group->nr_members; i++) {
			struct weir_pool_member *m = &group->member[i];

			memset(m->synced, 0, sizeof(m->synced));
			for (uint16_t v = 0; v < VOLUMES; v++) {
				if (!to->volume[v].is_blank &&
				    w->synced[v][g][m->donor] == m->joined)
					weir_pool_member_set_synced(m, v);
			}
		}
	}
}

static void begin_world(struct pool_world *w, uint64_t seed)
{
	static const char *const domains[DONORS] = { "r1", "r1", "r2", "r2", "r3", "r4" };
	char id[] = "a";

	*w = (struct pool_world){ .random = seed * 0x9e3779b97f4a7c15ull + 1 };
	weir_pool_map_init(&w->truth);
	w->truth.stored = 1;
	w->truth.lease_ms = LEASE_MS;
	w->truth.replace_ms = REPLACE_MS;
	w->truth.table_groups = GROUPS;
	w->perils = 1 + below(w, 30);
	for (int d = 0; d < DONORS; d++, id[0]++) {
		weir_pool_map_add_donor(&w->truth, id);
		memcpy(w->truth.donor[d].domain, domains[d], 3);
		w->truth.donor[d].bytes = 1 << 30;
	}
	w->truth.nr_volumes = VOLUMES;
	for (int v = 0; v < VOLUMES; v++) {
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

static bool is_alive(const struct pool_world *w, const struct weir_pool_member *m)
{
	return w->donor[m->donor].is_up && w->donor[m->donor].incarnation == m->incarnation;
}

/* The promise that all is about. */
static void check_members(struct pool_world *w)
{
	for (int g = 0; g < GROUPS; g++) {
		const struct weir_pool_group *group = &w->truth.group[g];

		for (uint8_t i = 0; i < group->nr_members; i++) {
			const struct weir_pool_member *m = &group->member[i];

			if (m->state != WEIR_POOL_SERVING || !is_alive(w, m))
				continue;
			for (int v = 0; v < VOLUMES; v++)
				w->has_lost_write |=
					w->donor[m->donor].memory[g][v] < w->completed[g][v];
		}
	}
	assert_true(!w->has_lost_write || w->mistake);
}

/* Members that hold different shards stand in different domains. */
static void check_domains(const struct weir_pool_map *map, const struct weir_pool_group *group)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		for (uint8_t j = 0; j < i; j++) {
			const struct weir_pool_member *a = &group->member[i];
			const struct weir_pool_member *b = &group->member[j];

			if (a->state == WEIR_POOL_OUT || b->state == WEIR_POOL_OUT)
				continue;
			assert_int_not_equal(a->donor, b->donor);
			if (a->shard == b->shard)
				assert_true(a->state != b->state);
			else
				assert_true(strcmp(map->donor[a->donor].domain,
						   map->donor[b->donor].domain));
		}
	}
}

/* A group loses data only with memory: a member that leaves has lost its own. */
static void check_loss(const struct pool_world *w, const struct weir_pool_group *old,
		       const struct weir_pool_group *new)
{
	uint8_t alive = 0;

	if (!weir_pool_group_is_lost(new) || weir_pool_group_is_lost(old) || !old->version)
		return;
	for (uint8_t i = 0; i < old->nr_members; i++)
		alive += old->member[i].state == WEIR_POOL_SERVING && is_alive(w, &old->member[i]);
	assert_true(alive < old->scheme.data);
	counts.lost++;
}

/* The store: makes the change if the versions are as the coordinator has read them. */
static bool put(struct pool_world *w, const struct pool_leader *l, const struct weir_pool_op *op)
{
	struct weir_pool_group *group = &w->truth.group[op->index];

	if (w->truth.leader_stored != l->token)
		return false;
	if (op->kind == WEIR_POOL_PUT_GROUP) {
		if (group->stored != op->expected)
			return false;
		assert_int_equal(op->group.version, group->version + 1);
		check_domains(&w->truth, &op->group);
		check_loss(w, group, &op->group);
		counts.promoted += weir_pool_group_count(&op->group, WEIR_POOL_SERVING) >
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

	if (!weir_pool_map_may_lead(&l->map, self) ||
	    l->map.leader_stored != w->truth.leader_stored)
		return;
	counts.deposed += w->truth.leader_stored != 0;
	w->truth.leader = self;
	w->truth.leader_stored = l->token = ++w->truth.revision;
	copy_map(w, &l->map);
	weir_pool_coordinator_begin(&l->c, LEASE_MS, w->now_ns);
}

/* The first donors run a coordinator each, which may be stopped for any time. */
static void lead(struct pool_world *w, struct pool_leader *l)
{
	struct weir_pool_op op;

	if (!below(w, 3))
		copy_map(w, &l->map);
	campaign(w, l);
	if (!l->token)
		return;
	for (uint32_t i = below(w, 4); i > 0; i--) {
		if (!weir_pool_coordinator_next(&l->c, &l->map, w->now_ns, 1, &op))
			return;
		if (put(w, l, &op)) {
			weir_pool_coordinator_did(&l->map, &op, w->truth.revision);
		} else {
			counts.refused++;
			copy_map(w, &l->map);
		}
	}
}

static void register_donor(struct pool_world *w, uint16_t d)
{
	w->donor[d].has_lease = true;
	w->truth.donor[d].incarnation = w->donor[d].incarnation;
	w->truth.donor[d].stored = ++w->truth.revision;
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
}

/* A donor that starts again of its own accord takes no data with it. */
static void check_restart(const struct pool_world *w, uint16_t d)
{
	assert_false(weir_pool_map_is_serving(&w->truth, d, w->donor[d].incarnation));
}

/* A donor does what weir serve does: see weir_pool_map_may_restart(). */
static void live(struct pool_world *w, uint16_t d)
{
	struct pool_donor *donor = &w->donor[d];
	uint32_t peril = w->is_calm ? UINT32_MAX : below(w, 1000);
	/* The donor may have read its map long ago. */
	const struct weir_pool_map *old = below(w, 2) ? &w->truth : &w->client[0].map;

	if (!donor->is_up) {
		if (donor->has_lease && below(w, 2))
			end_lease(w, d);
		else if (w->is_calm || !below(w, 10))
			start_donor(w, d);
	} else if (peril < w->perils) {
		donor->is_up = false;
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
	if (!w->is_calm && !below(w, 300))
		w->truth.donor[d].is_draining = !w->truth.donor[d].is_draining;
}

static const struct weir_pool_member *find_member(const struct weir_pool_group *group, uint16_t d)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		if (group->member[i].donor == d && group->member[i].state != WEIR_POOL_OUT)
			return &group->member[i];
	}
	return NULL;
}

static void claim_volume(struct pool_world *w, struct pool_client *c, int v)
{
	copy_map(w, &c->map);
	if (!weir_pool_map_is_ready(&c->map, c->map.volume[v].scheme))
		return;
	counts.taken_over += w->claim[v] != 0;
	c->has_claim = true;
	c->was_blank = c->map.volume[v].is_blank;
	c->epoch = w->claim[v] = ++w->truth.revision;
	w->truth.volume[v].is_blank = false;
	memset(c->filled, 0, sizeof(c->filled));
	/* Time may pass between the steps of opening: others act on the old state. */
	copy_map(w, &c->map);
}

/* Whether the opening waits for a member. */
static bool must_have(const struct pool_world *w, const struct pool_client *c, int v,
		      const struct weir_pool_member *m)
{
	if (w->mistake == OPENS_WITHOUT_REPORTED_MEMBERS && m->state == WEIR_POOL_SYNCING)
		return c->was_blank;
	return weir_pool_map_may_serve(&c->map, m, &c->map.volume[v], c->was_blank);
}

/* A region is opened at an epoch: from then on, no earlier epoch writes. */
static bool fence(struct pool_world *w, uint16_t d, uint16_t g, int v, uint64_t epoch)
{
	uint64_t *latest = &w->donor[d].epoch[g][v];

	if (*latest > epoch) {
		counts.fenced++;
		return false;
	}
	*latest = epoch;
	return true;
}

/* Fences the group's members, and makes them equal. Return: whether all were there. */
static bool open_group(struct pool_world *w, struct pool_client *c, int v, uint16_t g)
{
	const struct weir_pool_group *group = &c->map.group[g];
	const struct weir_pool_member *source = NULL;

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (must_have(w, c, v, m) && !is_alive(w, m))
			return false;
		if (m->state == WEIR_POOL_SERVING && (!source || below(w, 2)))
			source = m;
	}
	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (!must_have(w, c, v, m))
			continue;
		assert_true(fence(w, m->donor, g, v, c->epoch));
		w->donor[m->donor].memory[g][v] = w->donor[source->donor].memory[g][v];
		c->filled[g][m->donor] = m->joined;
	}
	return true;
}

/* The groups become usable one after another, in any order. */
static void open_groups(struct pool_world *w, struct pool_client *c, int v)
{
	uint16_t g = (uint16_t)below(w, GROUPS);

	if (!c->is_open[g] && !weir_pool_group_is_lost(&c->map.group[g]))
		c->is_open[g] = open_group(w, c, v, g);
}

/* Also in the middle of a write: then some members have it, and others do not. */
static void close_volume(struct pool_world *w, struct pool_client *c, int v)
{
	c->has_claim = c->is_writing = false;
	memset(c->is_open, 0, sizeof(c->is_open));
	w->claim[v] = 0;
	w->truth.revision++;
}

static void begin_write(struct pool_world *w, struct pool_client *c)
{
	c->group = (uint16_t)below(w, GROUPS);
	if (weir_pool_group_is_lost(&c->map.group[c->group]) ||
	    (!c->is_open[c->group] && w->mistake != WRITES_BEFORE_COPIES_ARE_EQUAL))
		return;
	c->is_writing = true;
	c->number++;
	c->has = 0;
}

/* Delivers the write to one more member; ends it once all members that the client knows have it. */
static void go_on_writing(struct pool_world *w, struct pool_client *c, int v)
{
	const struct weir_pool_group *group = &c->map.group[c->group];
	bool has_all = !weir_pool_group_is_lost(group);

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];
		bool has = c->has >> m->donor & 1 && c->incarnations[m->donor] == m->incarnation;

		if (m->state == WEIR_POOL_OUT || has)
			continue;
		/* No write waits for a member that this client has not filled. */
		has_all &= m->state == WEIR_POOL_SYNCING &&
			   c->filled[c->group][m->donor] != m->joined;
		if (!is_alive(w, m) || below(w, 2))
			continue;
		assert_true(fence(w, m->donor, c->group, v, c->epoch));
		w->donor[m->donor].memory[c->group][v] = c->number;
		c->has |= 1u << m->donor;
		c->incarnations[m->donor] = m->incarnation;
	}
	if (!has_all)
		return;
	w->completed[c->group][v] = c->number;
	c->is_writing = false;
	counts.writes++;
}

static void report(struct pool_world *w, const struct pool_client *c)
{
	uint16_t d = (uint16_t)below(w, DONORS);
	struct weir_pool_donor *donor = &w->truth.donor[d];
	uint64_t known = c->map.donor[d].incarnation;

	/* Mostly with reason; some clients just have a bad link. */
	if (!known || donor->failed == known ||
	    (w->donor[d].is_up && w->donor[d].incarnation == known &&
	     (w->is_calm || below(w, 50))))
		return;
	donor->failed = known;
	donor->failed_stored = ++w->truth.revision;
}

/* Copies the volume's data of a group from a SERVING member to a SYNCING one, and reports. */
static void synchronise(struct pool_world *w, struct pool_client *c, int v)
{
	uint16_t g = (uint16_t)below(w, GROUPS);
	const struct weir_pool_group *group = &c->map.group[g];
	const struct weir_pool_member *from = NULL, *to = NULL;
	uint8_t readable = 0;

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (m->state == WEIR_POOL_SERVING && is_alive(w, m)) {
			readable++;
			from = m;
		}
		if (m->state == WEIR_POOL_SYNCING && is_alive(w, m) && (!to || below(w, 2)))
			to = m;
	}
	if (!c->is_open[g] || readable < group->scheme.data || !to ||
	    (c->is_writing && c->group == g))
		return;
	assert_true(fence(w, to->donor, g, v, c->epoch));
	w->donor[to->donor].memory[g][v] = w->donor[from->donor].memory[g][v];
	c->filled[g][to->donor] = to->joined;
	w->synced[v][g][to->donor] = to->joined;
	w->truth.revision++;
}

static void begin_rebuild(struct pool_world *w, struct pool_rebuilder *r, int v)
{
	if (w->claim[v] || w->truth.volume[v].is_blank || below(w, 3))
		return;
	r->is_active = true;
	r->is_copying = r->has_copied = false;
	r->donor = (uint16_t)below(w, DONORS);
	r->incarnation = w->donor[r->donor].incarnation;
	r->epoch = w->claim[v] = ++w->truth.revision;
	copy_map(w, &r->map);
}

static void end_rebuild(struct pool_world *w, struct pool_rebuilder *r, int v)
{
	r->is_active = false;
	if (w->claim[v] == r->epoch)
		w->claim[v] = 0;
}

/* Reads a value from any serving member, for a member of the donor. */
static void begin_copy(struct pool_world *w, struct pool_rebuilder *r, int v)
{
	uint16_t g = (uint16_t)below(w, GROUPS);
	const struct weir_pool_group *group = &r->map.group[g];
	const struct weir_pool_member *from = NULL, *to = NULL;

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (m->state == WEIR_POOL_SERVING && is_alive(w, m) && (!from || below(w, 2)))
			from = m;
		if (m->state == WEIR_POOL_SYNCING && m->donor == r->donor &&
		    m->incarnation == r->incarnation)
			to = m;
	}
	if (!from || !to || weir_pool_group_is_lost(group) ||
	    !fence(w, from->donor, g, v, r->epoch) || !fence(w, to->donor, g, v, r->epoch))
		return;
	r->is_copying = true;
	r->has_copied = false;
	r->group = g;
	r->joined = to->joined;
	r->value = w->donor[from->donor].memory[g][v];
}

/* Each step may come late: a client may have taken the volume over. */
static void go_on_copying(struct pool_world *w, struct pool_rebuilder *r, int v)
{
	struct pool_donor *donor = &w->donor[r->donor];
	bool may_write = donor->epoch[r->group][v] <= r->epoch ||
			 w->mistake == REBUILDS_WITHOUT_A_FENCE;

	if (!r->has_copied) {
		if (may_write)
			donor->memory[r->group][v] = r->value;
		r->has_copied = may_write;
		r->is_copying = may_write;
		counts.fenced += !may_write;
		return;
	}
	r->is_copying = false;
	if (w->claim[v] != r->epoch && w->mistake != REPORTS_WITHOUT_A_CLAIM)
		return;
	w->synced[v][r->group][r->donor] = r->joined;
	w->truth.revision++;
	counts.rebuilt++;
}

static void rebuild(struct pool_world *w, int v)
{
	struct pool_rebuilder *r = &w->rebuilder[v];
	bool is_alive_now = w->donor[r->donor].is_up &&
			    w->donor[r->donor].incarnation == r->incarnation;

	if (!r->is_active)
		begin_rebuild(w, r, v);
	else if (!is_alive_now || (!r->is_copying && !below(w, 12)))
		end_rebuild(w, r, v);
	else if (r->is_copying && (w->is_calm || !below(w, 6)))
		go_on_copying(w, r, v);
	else if (r->is_copying)
		return; /* this donor is stopped */
	else
		begin_copy(w, r, v);
	if (!below(w, 3))
		copy_map(w, &r->map);
}

static void use(struct pool_world *w, int v)
{
	struct pool_client *c = &w->client[v];

	/* Once all is calm, donors rebuild one of the volumes, and a client the other. */
	if (w->is_calm && c->has_claim && v)
		close_volume(w, c, v);
	if (!c->has_claim) {
		if (w->is_calm ? !v || w->truth.volume[v].is_blank : !below(w, 6))
			claim_volume(w, c, v);
		return;
	}
	open_groups(w, c, v);
	if (!w->is_calm && !below(w, 30)) {
		close_volume(w, c, v);
		return;
	}
	if (!below(w, 3))
		copy_map(w, &c->map);
	if (c->is_writing)
		go_on_writing(w, c, v);
	else if (below(w, 2))
		begin_write(w, c);
	if (below(w, 2))
		synchronise(w, c, v);
	report(w, c);
}

/* After a loss the operator removes the volumes, and makes them again: others, without data. */
static void make_volumes_again(struct pool_world *w)
{
	bool is_lost = false;

	for (int g = 0; g < GROUPS; g++)
		is_lost |= w->truth.group[g].version &&
			   weir_pool_group_is_lost(&w->truth.group[g]);
	if (!is_lost || !w->truth.nr_tables || below(w, 50))
		return;
	for (int v = 0; v < VOLUMES; v++) {
		w->truth.volume[v].is_blank = true;
		close_volume(w, &w->client[v], v);
		w->rebuilder[v].is_active = false;
		memset(w->synced[v], 0, sizeof(w->synced[v]));
		for (int g = 0; g < GROUPS; g++)
			w->completed[g][v] = 0;
	}
	for (int d = 0; d < DONORS; d++)
		memset(w->donor[d].memory, 0, sizeof(w->donor[d].memory));
	w->truth.revision++;
	counts.renewed++;
}

/* An operator's command: it knows a map of now, and needs no leader. */
static void rebalance(struct pool_world *w)
{
	struct weir_pool_op op;

	if (below(w, w->is_calm ? 40 : 20) || !weir_pool_balance_next(&w->truth, &op))
		return;
	check_domains(&w->truth, &op.group);
	w->truth.revision++;
	weir_pool_coordinator_did(&w->truth, &op, w->truth.revision);
	counts.moved++;
}

static void step(struct pool_world *w)
{
	uint32_t who = below(w, 4);

	w->now_ns += STEP_NS / 4 + below(w, STEP_NS);
	if (!who)
		live(w, (uint16_t)below(w, DONORS));
	else if (who == 1)
		lead(w, &w->leader[below(w, LEADERS)]);
	else if (who == 2)
		use(w, (int)below(w, VOLUMES));
	else
		rebuild(w, (int)below(w, VOLUMES));
	if (!below(w, w->is_calm ? 200 : 40))
		w->truth.leader_stored = 0;
	rebalance(w);
	make_volumes_again(w);
	check_members(w);
}

static void check_end(const struct pool_world *w)
{
	for (int g = 0; g < GROUPS; g++) {
		const struct weir_pool_group *group = &w->truth.group[g];

		assert_true(group->version > 0);
		if (weir_pool_group_is_lost(group))
			continue;
		assert_true(weir_pool_group_is_whole(group));
		assert_int_equal(group->nr_members, weir_pool_width(group->scheme));
		assert_int_equal(group->lean_ms, 0);
		for (uint8_t i = 0; i < group->nr_members; i++)
			assert_true(is_alive(w, &group->member[i]));
	}
	for (int d = 0; d < DONORS; d++)
		assert_int_equal(w->truth.donor[d].failed, 0);
}

/* One domain is enough less than there are: one drained donor must find room elsewhere. */
static void calm_down(struct pool_world *w)
{
	uint16_t drained = (uint16_t)below(w, DONORS);

	w->is_calm = true;
	for (int d = 0; d < DONORS; d++)
		w->truth.donor[d].is_draining = d == drained;
	for (int i = 0; i < CALM_STEPS * 10; i++)
		step(w);
	check_end(w);
	for (int g = 0; g < GROUPS; g++) {
		if (weir_pool_group_is_lost(&w->truth.group[g]))
			continue;
		assert_null(find_member(&w->truth.group[g], drained));
		counts.drained++;
	}
}

static void a_pool_keeps_what_was_written(void **state)
{
	struct pool_world *w = calloc(1, sizeof(*w));

	(void)state;
	for (uint32_t seed = 0; seed < WORLDS; seed++) {
		begin_world(w, seed);
		for (int i = 0; i < STEPS; i++)
			step(w);
		calm_down(w);
	}
	free(w);
	assert_true(counts.writes > WORLDS);
	assert_true(counts.lost > 0);
	assert_true(counts.renewed > 0);
	assert_true(counts.promoted > WORLDS);
	assert_true(counts.drained > WORLDS);
	assert_true(counts.refused > 0);
	assert_true(counts.moved > WORLDS);
	assert_true(counts.rebuilt > WORLDS);
	assert_true(counts.fenced > 0);
	assert_true(counts.taken_over > WORLDS / 4);
	assert_true(counts.deposed > WORLDS / 8);
}

static bool finds(struct pool_world *w, enum mistake mistake)
{
	for (uint32_t seed = 0; seed < WORLDS_MAX; seed++) {
		begin_world(w, seed);
		w->mistake = mistake;
		for (int i = 0; i < STEPS && !w->has_lost_write; i++)
			step(w);
		if (w->has_lost_write)
			return true;
	}
	return false;
}

static void each_mistake_of_clients_and_donors_loses_a_write(void **state)
{
	struct pool_world *w = calloc(1, sizeof(*w));

	(void)state;
	for (int mistake = NO_MISTAKE + 1; mistake < NR_MISTAKES; mistake++)
		assert_true(finds(w, (enum mistake)mistake));
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_keeps_what_was_written),
		cmocka_unit_test(each_mistake_of_clients_and_donors_loses_a_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
