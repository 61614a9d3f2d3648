/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The clients of a pool, and its donors as rebuilders: steps of lib/volume, modelled. */
#include "sim/hunt/pool/pool_world.h"

static void claim_volume(struct pool_world *w, struct pool_client *c, int v)
{
	if (!pool_read_map(w, &c->map) || !weir_pool_map_is_ready(&c->map, c->map.volume[v].scheme))
		return;
	w->counts->taken_over += w->claim[v] != 0;
	c->has_claim = true;
	c->was_blank = c->map.volume[v].is_blank;
	c->epoch = w->claim[v] = ++w->truth.revision;
	pool_note(w, "claim", (uint64_t)v, c->epoch);
	w->truth.volume[v].is_blank = false;
	memset(c->filled, 0, sizeof(c->filled));
	/* Time may pass between the steps of opening: others act on the old state. */
	pool_read_map(w, &c->map);
}

/* Whether the opening waits for a member. */
static bool must_have(const struct pool_world *w, const struct pool_client *c, int v,
		      const struct weir_pool_member *m)
{
	if (w->mistake == POOL_OPENS_WITHOUT_REPORTED_MEMBERS && m->state == WEIR_POOL_SYNCING)
		return c->was_blank;
	return weir_pool_map_may_serve(&c->map, m, &c->map.volume[v], c->was_blank);
}

/* A region is opened at an epoch: from then on, no earlier epoch writes. */
static bool fence(struct pool_world *w, uint16_t d, uint16_t g, int v, uint64_t epoch)
{
	uint64_t *latest = &w->donor[d].epoch[g][v];

	if (*latest > epoch) {
		w->counts->fenced++;
		return false;
	}
	*latest = epoch;
	return true;
}

/* No client is modelled that goes on after another has claimed the volume: rebuilders do. */
static void must_fence(struct pool_world *w, uint16_t d, uint16_t g, int v, uint64_t epoch)
{
	pool_expect(w, fence(w, d, g, v, epoch), "a donor refuses the latest client");
}

/* Fences the group's members, and makes them equal. Return: whether all were there. */
static bool open_group(struct pool_world *w, struct pool_client *c, int v, uint16_t g)
{
	const struct weir_pool_group *group = &c->map.group[g];
	const struct weir_pool_member *source = NULL;

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (must_have(w, c, v, m) && !pool_is_alive(w, m))
			return false;
		if (m->state == WEIR_POOL_SERVING && (!source || pool_below(w, 2)))
			source = m;
	}
	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (!must_have(w, c, v, m))
			continue;
		must_fence(w, m->donor, g, v, c->epoch);
		w->donor[m->donor].memory[g][v] = w->donor[source->donor].memory[g][v];
		c->filled[g][m->donor] = m->joined;
	}
	return true;
}

/* The groups become usable one after another, in any order. */
static void open_groups(struct pool_world *w, struct pool_client *c, int v)
{
	uint16_t g = (uint16_t)pool_below(w, POOL_GROUPS);

	if (!c->is_open[g] && !weir_pool_group_is_lost(&c->map.group[g]))
		c->is_open[g] = open_group(w, c, v, g);
}

/* While the store is away, the claim stays, and ends with its lease. */
static void give_up_claim(struct pool_world *w, int v, uint64_t epoch)
{
	if (w->is_away || w->claim[v] != epoch)
		return;
	w->claim[v] = 0;
	w->truth.revision++;
}

void pool_client_close(struct pool_world *w, struct pool_client *c, int v)
{
	c->has_claim = c->is_writing = false;
	memset(c->is_open, 0, sizeof(c->is_open));
	give_up_claim(w, v, c->epoch);
	pool_note(w, "close", (uint64_t)v, c->epoch);
}

static void begin_write(struct pool_world *w, struct pool_client *c)
{
	c->group = (uint16_t)pool_below(w, POOL_GROUPS);
	if (weir_pool_group_is_lost(&c->map.group[c->group]) ||
	    (!c->is_open[c->group] && w->mistake != POOL_WRITES_BEFORE_COPIES_ARE_EQUAL))
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
		if (!pool_is_alive(w, m) || pool_below(w, 2))
			continue;
		must_fence(w, m->donor, c->group, v, c->epoch);
		w->donor[m->donor].memory[c->group][v] = c->number;
		c->has |= 1u << m->donor;
		c->incarnations[m->donor] = m->incarnation;
	}
	has_all |= c->has && w->mistake == POOL_COMPLETES_BEFORE_THE_LAST_COPY;
	if (!has_all)
		return;
	pool_note(w, "write", c->group, c->number);
	w->completed[c->group][v] = c->number;
	c->is_writing = false;
	w->counts->writes++;
}

static void report(struct pool_world *w, const struct pool_client *c)
{
	uint16_t d = (uint16_t)pool_below(w, POOL_DONORS);
	struct weir_pool_donor *donor = &w->truth.donor[d];
	uint64_t known = c->map.donor[d].incarnation;

	/* Mostly with reason; some clients just have a bad link. */
	if (w->is_away || !known || donor->failed == known ||
	    (w->donor[d].is_up && w->donor[d].incarnation == known &&
	     (w->is_calm || pool_below(w, 50))))
		return;
	donor->failed = known;
	donor->failed_stored = ++w->truth.revision;
	pool_note(w, "report", d, known);
}

/* Copies the volume's data of a group from a SERVING member to a SYNCING one, and reports. */
static void synchronise(struct pool_world *w, struct pool_client *c, int v)
{
	uint16_t g = (uint16_t)pool_below(w, POOL_GROUPS);
	const struct weir_pool_group *group = &c->map.group[g];
	const struct weir_pool_member *from = NULL, *to = NULL;
	uint8_t readable = 0;

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (m->state == WEIR_POOL_SERVING && pool_is_alive(w, m)) {
			readable++;
			from = m;
		}
		if (m->state == WEIR_POOL_SYNCING && pool_is_alive(w, m) &&
		    (!to || pool_below(w, 2)))
			to = m;
	}
	if (!c->is_open[g] || readable < group->scheme.data || !to ||
	    (c->is_writing && c->group == g && w->mistake != POOL_FILLS_AROUND_A_WRITE))
		return;
	must_fence(w, to->donor, g, v, c->epoch);
	w->donor[to->donor].memory[g][v] = w->donor[from->donor].memory[g][v];
	c->filled[g][to->donor] = to->joined;
	if (w->is_away)
		return;
	w->synced[v][g][to->donor] = to->joined;
	w->truth.revision++;
	pool_note(w, "filled", g, to->joined);
}

static void begin_rebuild(struct pool_world *w, struct pool_rebuilder *r, int v)
{
	if (w->is_away || w->claim[v] || w->truth.volume[v].is_blank || pool_below(w, 3))
		return;
	r->is_active = true;
	r->is_copying = r->has_copied = false;
	r->donor = (uint16_t)pool_below(w, POOL_DONORS);
	r->incarnation = w->donor[r->donor].incarnation;
	r->epoch = w->claim[v] = ++w->truth.revision;
	pool_read_map(w, &r->map);
}

static void end_rebuild(struct pool_world *w, struct pool_rebuilder *r, int v)
{
	r->is_active = false;
	give_up_claim(w, v, r->epoch);
}

/* Reads a value from any serving member, for a member of the donor. */
static void begin_copy(struct pool_world *w, struct pool_rebuilder *r, int v)
{
	uint16_t g = (uint16_t)pool_below(w, POOL_GROUPS);
	const struct weir_pool_group *group = &r->map.group[g];
	const struct weir_pool_member *from = NULL, *to = NULL;

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (m->state == WEIR_POOL_SERVING && pool_is_alive(w, m) &&
		    (!from || pool_below(w, 2)))
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
			 w->mistake == POOL_REBUILDS_WITHOUT_A_FENCE;

	if (!r->has_copied) {
		if (may_write)
			donor->memory[r->group][v] = r->value;
		r->has_copied = may_write;
		r->is_copying = may_write;
		w->counts->fenced += !may_write;
		return;
	}
	r->is_copying = false;
	if (w->is_away || (w->claim[v] != r->epoch && w->mistake != POOL_REPORTS_WITHOUT_A_CLAIM))
		return;
	w->synced[v][r->group][r->donor] = r->joined;
	w->truth.revision++;
	pool_note(w, "rebuilt", r->group, r->joined);
	w->counts->rebuilt++;
}

void pool_rebuilder_step(struct pool_world *w, int v)
{
	struct pool_rebuilder *r = &w->rebuilder[v];
	bool is_alive_now = w->donor[r->donor].is_up &&
			    w->donor[r->donor].incarnation == r->incarnation;

	if (!r->is_active && r->epoch && w->claim[v] == r->epoch)
		give_up_claim(w, v, r->epoch);
	else if (!r->is_active)
		begin_rebuild(w, r, v);
	else if (!is_alive_now || (!r->is_copying && !pool_below(w, 12)))
		end_rebuild(w, r, v);
	else if (r->is_copying && (w->is_calm || !pool_below(w, 6)))
		go_on_copying(w, r, v);
	else if (r->is_copying)
		return; /* this donor is stopped */
	else
		begin_copy(w, r, v);
	if (!pool_below(w, 3))
		pool_read_map(w, &r->map);
}

void pool_client_step(struct pool_world *w, int v)
{
	struct pool_client *c = &w->client[v];

	/* Once all is calm, donors rebuild one of the volumes, and a client the other. */
	if (w->is_calm && c->has_claim && v)
		pool_client_close(w, c, v);
	if (!c->has_claim) {
		if (c->epoch && !pool_below(w, 4))
			give_up_claim(w, v, c->epoch);
		if (w->is_calm ? !v || w->truth.volume[v].is_blank : !pool_below(w, 6))
			claim_volume(w, c, v);
		return;
	}
	open_groups(w, c, v);
	if (!w->is_calm && !pool_below(w, 30)) {
		pool_client_close(w, c, v);
		return;
	}
	if (!pool_below(w, 3))
		pool_read_map(w, &c->map);
	if (c->is_writing)
		go_on_writing(w, c, v);
	else if (pool_below(w, 2))
		begin_write(w, c);
	if (pool_below(w, 2))
		synchronise(w, c, v);
	report(w, c);
}
