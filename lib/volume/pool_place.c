/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Brings the copies of a mapped volume in line with the map: copies of members that are out leave,
 * and members without a copy get one. Context of all: the maintaining thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/client/memory/region.h"
#include "lib/volume/pool.h"
#include "lib/volume/rebuild.h"
#include "lib/volume/region_name.h"

/* Return: whether the member gets writes. */
static bool is_in(const struct weir_pool_member *m)
{
	return m->state != WEIR_POOL_OUT;
}

static const struct weir_pool_group *group_of(const struct weir_volume *v, uint32_t extent)
{
	return &v->pool->map->group[v->pool->group[extent]];
}

/* Return: the member that a copy belongs to, or NULL if it is out. */
static const struct weir_pool_member *member_at(struct weir_volume *v, uint32_t extent,
						uint8_t slot)
{
	const struct weir_pool_group *group = group_of(v, extent);
	uint8_t target = v->extents[extent].replica[slot].donor;

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (is_in(m) && m->joined == *weir_volume_pool_joined(v, extent, slot) &&
		    weir_volume_pool_is_of(v, &v->targets[target], m))
			return m;
	}
	return NULL;
}

static bool has_memory(const struct weir_volume *v, uint32_t extent, uint8_t slot)
{
	return v->extents[extent].replica[slot].state != WEIR_REPLICA_NONE;
}

/* Return: the slot of a member's copy, or slots if it has none. */
static uint8_t slot_of(struct weir_volume *v, uint32_t extent, const struct weir_pool_member *m)
{
	uint8_t slot = 0;

	while (slot < v->core.slots &&
	       (!has_memory(v, extent, slot) || member_at(v, extent, slot) != m))
		slot++;
	return slot;
}

static uint8_t free_slot(const struct weir_volume *v, uint32_t extent)
{
	uint8_t slot = 0;

	while (slot < v->core.slots && has_memory(v, extent, slot))
		slot++;
	return slot;
}

static void name_region(const struct weir_volume *v, uint32_t extent, uint64_t joined,
			char text[static WEIR_REGION_NAME_MAX + 1])
{
	const struct weir_volume_region_name name = { .pool = v->pool->pool_id,
						      .volume = v->pool->volume_id,
						      .joined = joined,
						      .extent = extent };

	weir_volume_region_name_format(&name, text);
}

void weir_volume_pool_detach(struct weir_volume *v, uint8_t target)
{
	weir_volume_lock(v);
	for (uint32_t i = 0; i < v->core.nr_extents; i++) {
		for (uint8_t slot = 0; slot < v->core.slots; slot++) {
			if (has_memory(v, i, slot) && v->extents[i].replica[slot].donor == target)
				*weir_volume_region(v, i, slot) = NULL;
		}
	}
	weir_volume_unlock(v);
}

/* Copies whose member is out are not written or read any more. */
static void leave(struct weir_volume *v, uint32_t extent)
{
	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		if (!has_memory(v, extent, slot) || member_at(v, extent, slot))
			continue;
		weir_volume_lock(v);
		weir_extents_leave(&v->core, extent, slot);
		weir_volume_unlock(v);
	}
}

/* Gives a region back. It stays at the donor if its member, still in the map, will use it again. */
static void give_back(struct weir_volume *v, const struct weir_extents_placement *place,
		      struct weir_region *region)
{
	struct weir_session *session = v->targets[place->donor].session;
	char name[WEIR_REGION_NAME_MAX + 1];

	if (!member_at(v, place->extent, place->slot)) {
		name_region(v, place->extent,
			    *weir_volume_pool_joined(v, place->extent, place->slot), name);
		weir_region_delete(session, name, NULL);
	}
	weir_region_close(region);
}

static void return_memory(struct weir_volume *v)
{
	struct weir_extents_placement place;
	struct weir_region *region;

	for (;;) {
		bool any;

		weir_volume_lock(v);
		any = weir_extents_next_return(&v->core, UINT64_MAX, &place);
		if (any) {
			region = *weir_volume_region(v, place.extent, place.slot);
			*weir_volume_region(v, place.extent, place.slot) = NULL;
		}
		weir_volume_unlock(v);
		if (!any)
			return;
		if (region)
			give_back(v, &place, region);
		weir_volume_lock(v);
		weir_extents_returned(&v->core, &place, true);
		weir_volume_unlock(v);
	}
}

/*
 * Creates the region first if it is not there, and @is_new allows it. The hold of its creation has
 * no epoch, and ends. @is_new: receives whether the region was created.
 */
static int open_region(struct weir_volume *v, struct weir_session *session, const char *name,
		       struct weir_region **region, bool *is_new, struct weir_error *error)
{
	int rc = weir_region_open_fenced(session, name, v->pool->epoch, region, error);
	bool may_create = *is_new;

	*is_new = false;
	if (rc != -ENOENT || !may_create)
		return rc;
	rc = weir_region_create(session, name, weir_volume_extent_bytes(v), 0, region, error);
	if (rc && rc != -EEXIST)
		return rc;
	if (!rc)
		weir_region_forget(*region);
	*is_new = !rc;
	return weir_region_open_fenced(session, name, v->pool->epoch, region, error);
}

static void note_refusal(struct weir_volume *v, struct weir_volume_target *target, int rc,
			 const struct weir_error *reason)
{
	if (rc == -EBUSY) { /* a client of a later epoch has the volume */
		weir_volume_pool_end(v, -ESTALE);
		return;
	}
	weir_volume_lock(v);
	if (rc == -ENOSPC || rc == -EDQUOT) {
		v->pool->refusal = rc;
		v->pool->reason = *reason;
	} else {
		target->is_failed = true;
	}
	weir_volume_unlock(v);
}

/* The copy becomes usable. @found: its memory may hold data. */
static void join(struct weir_volume *v, const struct weir_extents_placement *place,
		 uint64_t joined, bool found)
{
	struct weir_volume_pool *p = v->pool;

	*weir_volume_pool_joined(v, place->extent, place->slot) = joined;
	weir_extents_join(&v->core, place);
	p->found[place->extent] &= (uint8_t)~(1u << place->slot);
	p->found[place->extent] |= (uint8_t)(found << place->slot);
}

static bool has_failed(struct weir_volume *v, const struct weir_volume_target *target)
{
	bool is_failed;

	weir_volume_lock(v);
	is_failed = target->is_failed;
	weir_volume_unlock(v);
	return is_failed;
}

/* Opens the region of a member's copy, which may be new. */
static void attach(struct weir_volume *v, uint32_t extent, const struct weir_pool_member *m,
		   struct weir_volume_target *target)
{
	uint8_t slot = slot_of(v, extent, m);
	bool has_copy = slot < v->core.slots, is_new = !has_copy;
	struct weir_region *region = NULL;
	struct weir_error reason = { "" };
	char name[WEIR_REGION_NAME_MAX + 1];
	int rc;

	if (!has_copy)
		slot = free_slot(v, extent);
	if (slot == v->core.slots || (has_copy && *weir_volume_region(v, extent, slot)) ||
	    (!has_copy && has_failed(v, target)))
		return;
	name_region(v, extent, m->joined, name);
	rc = open_region(v, target->session, name, &region, &is_new, &reason);
	if (rc) {
		note_refusal(v, target, rc, &reason);
		return;
	}
	weir_volume_lock(v);
	v->pool->moves++;
	*weir_volume_region(v, extent, slot) = region;
	if (!has_copy)
		join(v, &(struct weir_extents_placement){ extent, slot,
							  (uint8_t)(target - v->targets) },
		     m->joined, !is_new);
	weir_volume_unlock(v);
}

bool weir_volume_pool_is_own(const struct weir_volume *v, const struct weir_pool_map *map,
			     const struct weir_pool_member *m)
{
	return v->rebuild && m->incarnation == v->rebuild->incarnation &&
	       !strcmp(map->donor[m->donor].id, v->rebuild->donor);
}

bool weir_volume_pool_is_wanted(const struct weir_volume *v, const struct weir_pool_map *map,
				uint16_t group)
{
	const struct weir_pool_group *g = &map->group[group];
	bool found = !v->rebuild;

	for (uint8_t i = 0; i < g->nr_members; i++)
		found |= g->member[i].state == WEIR_POOL_SYNCING &&
			 !weir_pool_group_is_lost(g) &&
			 weir_volume_pool_is_own(v, map, &g->member[i]);
	return found;
}

static bool is_wanted(const struct weir_volume *v, uint32_t extent)
{
	return weir_volume_pool_is_wanted(v, v->pool->map, v->pool->group[extent]);
}

/* Whether a member has a part in the opening: a donor fills its own members only. */
static bool takes_part(const struct weir_volume *v, const struct weir_pool_member *m)
{
	return is_in(m) && (!v->rebuild || m->state == WEIR_POOL_SERVING ||
			    weir_volume_pool_is_own(v, v->pool->map, m));
}

static void attach_all(struct weir_volume *v, uint32_t extent)
{
	const struct weir_pool_group *group = group_of(v, extent);

	if (!is_wanted(v, extent))
		return;
	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		for (unsigned int t = 0; takes_part(v, m) && t < v->nr_targets; t++) {
			if (v->targets[t].session && weir_volume_pool_is_of(v, &v->targets[t], m))
				attach(v, extent, m, &v->targets[t]);
		}
	}
}

/* Whether the opening waits until the member has all data. */
static bool must_have(const struct weir_volume *v, const struct weir_pool_member *m)
{
	const struct weir_volume_pool *p = v->pool;

	if (v->rebuild)
		return m->state == WEIR_POOL_SYNCING && weir_volume_pool_is_own(v, p->map, m);
	return weir_pool_map_may_serve(p->map, m, weir_pool_map_volume(p->map, p->name),
				       p->was_blank);
}

/* Return: whether each such member, and any serving one, has a copy that is attached. */
static bool is_attached(struct weir_volume *v, uint32_t extent)
{
	const struct weir_pool_group *group = group_of(v, extent);
	bool any_serves = false;

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];
		uint8_t slot = slot_of(v, extent, m);
		bool is_there = slot < v->core.slots && *weir_volume_region(v, extent, slot);

		if (must_have(v, m) && !is_there)
			return false;
		any_serves |= m->state == WEIR_POOL_SERVING && is_there;
	}
	return any_serves;
}

/* Return: the copies of serving members whose memory was there. */
static uint8_t found_serving(struct weir_volume *v, uint32_t extent)
{
	uint8_t found = 0;

	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		const struct weir_pool_member *m =
			has_memory(v, extent, slot) ? member_at(v, extent, slot) : NULL;

		if (m && m->state == WEIR_POOL_SERVING)
			found |= (uint8_t)(v->pool->found[extent] & 1u << slot);
	}
	return found;
}

/* Return: whether the store still has the groups as they are in use. */
static bool is_latest(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	struct weir_pool_map *now = calloc(1, sizeof(*now));
	bool is_same = now && !weir_pool_client_read(p->reporter, now, NULL) &&
		       now->id == p->pool_id; /* and not another pool of the same name */

	for (uint32_t i = 0; is_same && i < v->core.nr_extents; i++)
		is_same = now->group[p->group[i]].version == group_of(v, i)->version;
	free(now);
	return is_same;
}

/*
 * Serving members get memory before the first request. So where none of them had any, there is no
 * data. But a donor that is no member any more takes its memory back: see reclaim.h. So the map
 * must still be the same after the regions were opened.
 */
static bool has_no_data(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;

	if (p->was_blank)
		return true;
	if (p->proof_moves != p->moves) {
		p->proof_moves = p->moves;
		p->is_proven = is_latest(v);
	}
	return p->is_proven;
}

/* Whether a step of the resync is under way at a copy: it may end after a choice, and spoil it. */
static bool has_users(const struct weir_volume *v, uint32_t extent)
{
	bool any = false;

	for (uint8_t slot = 0; slot < v->core.slots; slot++)
		any |= v->extents[extent].replica[slot].users > 0;
	return any;
}

/* @found: the serving copies whose memory was there; 0: there is no data */
static void trust(struct weir_volume *v, uint32_t extent, uint8_t found)
{
	if (found)
		weir_extents_found(&v->core, extent);
	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		if (!has_memory(v, extent, slot) || (found && !(found >> slot & 1)))
			continue;
		weir_extents_trust(&v->core, extent, slot);
		if (found && !v->rebuild)
			break;
	}
}

/*
 * Without data, all copies are whole. Else one serving copy is the source of all others; a donor
 * leaves serving copies as they are, and trusts each. Context: no request may use the extent yet.
 */
static void choose_source(struct weir_volume *v, uint32_t extent)
{
	bool is_chosen;
	uint8_t found;

	weir_volume_lock(v);
	is_chosen = weir_extents_count_valid(&v->core, extent);
	found = found_serving(v, extent);
	weir_volume_unlock(v);
	if (is_chosen || (!found && !has_no_data(v)))
		return;
	weir_volume_lock(v);
	if (!has_users(v, extent))
		trust(v, extent, found);
	weir_volume_unlock(v);
}

/* Return: whether the member has all data of an extent. */
static bool is_valid_at(struct weir_volume *v, uint32_t extent, const struct weir_pool_member *m)
{
	uint8_t slot = slot_of(v, extent, m);

	return slot < v->core.slots && v->extents[extent].replica[slot].state == WEIR_REPLICA_VALID;
}

/* Whether all copies that a later client may read are there, and whole. */
static bool are_whole(struct weir_volume *v, uint32_t extent)
{
	const struct weir_pool_group *group = group_of(v, extent);

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (must_have(v, m) && !is_valid_at(v, extent, m))
			return false;
	}
	return is_attached(v, extent);
}

bool weir_volume_pool_is_equal(struct weir_volume *v, uint32_t extent)
{
	struct weir_volume_pool *p = v->pool;

	if (p->equal[extent])
		return true;
	p->equal[extent] = !is_wanted(v, extent) || are_whole(v, extent);
	p->nr_equal += p->equal[extent];
	return p->equal[extent];
}

/* Return: whether the extent has a source. */
static bool open_extent(struct weir_volume *v, uint32_t extent)
{
	bool is_open;

	if (!is_wanted(v, extent))
		return true;
	if (!v->pool->is_open && weir_pool_group_is_lost(group_of(v, extent))) {
		weir_volume_pool_end(v, -EIO);
		return false;
	}
	if (is_attached(v, extent))
		choose_source(v, extent);
	weir_volume_lock(v);
	is_open = is_attached(v, extent) && weir_extents_count_valid(&v->core, extent);
	weir_volume_unlock(v);
	return is_open;
}

static bool are_equal(struct weir_volume *v)
{
	bool are_equal;

	weir_volume_lock(v);
	are_equal = v->pool->nr_equal == v->core.nr_extents;
	weir_volume_unlock(v);
	return are_equal;
}

/* Chooses a source for each extent, again if the first has died before the copies are equal. */
static void open_extents(struct weir_volume *v)
{
	bool is_open = true, is_equal;

	v->pool->proof_moves = UINT64_MAX; /* once in each round */
	for (uint32_t i = 0; i < v->core.nr_extents; i++) {
		weir_volume_lock(v);
		is_equal = weir_volume_pool_is_equal(v, i);
		weir_volume_unlock(v);
		is_open &= is_equal || open_extent(v, i);
	}
	weir_volume_lock(v);
	v->pool->is_open |= is_open;
	weir_volume_unlock(v);
}

/* Of the members that take part. */
static void add_progress(struct weir_volume *v, uint32_t extent, uint64_t *done, uint64_t *all)
{
	const struct weir_pool_group *group = group_of(v, extent);
	const struct weir_extents_resync *copy = &v->core.copy;

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];
		uint8_t slot = slot_of(v, extent, m);

		if (m->state != WEIR_POOL_SYNCING || !takes_part(v, m))
			continue;
		*all += v->core.pages;
		if (slot == v->core.slots)
			continue;
		if (v->extents[extent].replica[slot].state == WEIR_REPLICA_VALID)
			*done += v->core.pages;
		else if (copy->state != WEIR_RESYNC_IDLE && copy->extent == extent &&
			 copy->target == slot)
			*done += copy->page;
	}
}

unsigned int weir_volume_pool_progress(struct weir_volume *v)
{
	uint64_t done = 0, all = 0;

	weir_volume_lock(v);
	for (uint32_t i = 0; i < v->core.nr_extents; i++)
		add_progress(v, i, &done, &all);
	weir_volume_unlock(v);
	return all ? (unsigned int)(done * 100 / all) : 100;
}

/* Members that joined an extent without data later are whole, too, if their memory is new. */
static void trust_new(struct weir_volume *v, uint32_t extent)
{
	weir_volume_lock(v);
	for (uint8_t slot = 0; slot < v->core.slots; slot++) {
		if (!v->extents[extent].live && !(v->pool->found[extent] >> slot & 1))
			weir_extents_trust(&v->core, extent, slot);
	}
	weir_volume_unlock(v);
}

static void mark_syncing(struct weir_volume *v, uint16_t number)
{
	const struct weir_pool_group *group = &v->pool->map->group[number];

	memset(v->pool->ready[number], 0, sizeof(v->pool->ready[number]));
	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];

		if (m->state == WEIR_POOL_SYNCING && m->shard < WEIR_POOL_COPIES_MAX)
			v->pool->ready[number][m->shard] = m->joined;
	}
}

/* Finds the syncing members that have all data of the volume. */
static void find_ready(struct weir_volume *v)
{
	weir_volume_lock(v);
	for (uint16_t i = 0; i < weir_pool_map_groups(v->pool->map); i++)
		mark_syncing(v, i);
	for (uint32_t i = 0; i < v->core.nr_extents; i++) {
		const struct weir_pool_group *group = group_of(v, i);

		for (uint8_t j = 0; j < group->nr_members; j++) {
			const struct weir_pool_member *m = &group->member[j];

			if (m->state == WEIR_POOL_SYNCING && !is_valid_at(v, i, m))
				v->pool->ready[v->pool->group[i]][m->shard] = 0;
		}
	}
	weir_volume_unlock(v);
}

static bool is_over(struct weir_volume *v)
{
	bool has_ended;

	weir_volume_lock(v);
	has_ended = v->status;
	weir_volume_unlock(v);
	return has_ended || weir_volume_is_closing(v);
}

void weir_volume_pool_place(struct weir_volume *v)
{
	for (uint32_t i = 0; i < v->core.nr_extents; i++)
		leave(v, i);
	return_memory(v);
	for (uint32_t i = 0; i < v->core.nr_extents && !is_over(v); i++)
		attach_all(v, i);
	if (!v->pool->is_open || !are_equal(v))
		open_extents(v);
	if (!v->pool->is_open)
		return;
	for (uint32_t i = 0; i < v->core.nr_extents; i++)
		trust_new(v, i);
	find_ready(v);
}
