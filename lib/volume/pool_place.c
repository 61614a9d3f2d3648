/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens and gives back the regions of a mapped volume, as core/volume/members.h decides. Context of
 * all: the maintaining thread.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/client/memory/region.h"
#include "lib/volume/coded/coded.h"
#include "lib/volume/pool.h"
#include "lib/volume/rebuild.h"
#include "lib/volume/region_name.h"

/* Whether a target is this member's donor. */
static bool is_of(const struct weir_volume *v, const struct weir_volume_target *target,
		  const struct weir_pool_member *m)
{
	return target->address && target->incarnation == m->incarnation &&
	       !strcmp(target->id, v->pool->map->donor[m->donor].id);
}

static bool is_own(const struct weir_volume *v, const struct weir_pool_map *map,
		   const struct weir_pool_member *m)
{
	return v->rebuild && m->incarnation == v->rebuild->incarnation &&
	       !strcmp(map->donor[m->donor].id, v->rebuild->donor);
}

void weir_volume_pool_read_group(const struct weir_volume *v, const struct weir_pool_map *map,
				 uint16_t number, struct weir_member_group *group)
{
	const struct weir_pool_volume *volume = weir_pool_map_volume(map, v->pool->name);
	const struct weir_pool_group *from = &map->group[number];

	group->nr = 0;
	for (uint8_t i = 0; i < from->nr_members; i++) {
		const struct weir_pool_member *m = &from->member[i];

		if (m->state == WEIR_POOL_OUT)
			continue;
		group->member[group->nr++] = (struct weir_member){
			.joined = m->joined,
			.donor = WEIR_MEMBERS_NO_DONOR,
			.shard = m->shard,
			.serves = m->state == WEIR_POOL_SERVING,
			.counts =
				weir_pool_map_may_serve(map, m, volume, v->pool->members.is_blank),
			.is_own = is_own(v, map, m),
		};
	}
}
static_assert(WEIR_MEMBERS_MAX >= WEIR_POOL_MEMBERS_MAX, "members of a group");

static uint8_t find_target(const struct weir_volume *v, const struct weir_pool_member *m)
{
	for (uint8_t t = 0; t < v->nr_targets; t++) {
		if (is_of(v, &v->targets[t], m))
			return t;
	}
	return WEIR_MEMBERS_NO_DONOR;
}

/* The core's groups become those of the map. */
static void take_groups(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	const struct weir_pool_table *table =
		weir_pool_map_table(p->map, weir_pool_map_volume(p->map, p->name)->scheme);

	weir_volume_lock(v);
	for (uint16_t i = table->first; i < table->first + table->count; i++) {
		const struct weir_pool_group *from = &p->map->group[i];
		struct weir_member *member = p->groups[i].member;

		weir_volume_pool_read_group(v, p->map, i, &p->groups[i]);
		for (uint8_t j = 0; j < from->nr_members; j++) {
			if (from->member[j].state != WEIR_POOL_OUT)
				member++->donor = find_target(v, &from->member[j]);
		}
	}
	weir_volume_unlock(v);
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
	weir_members_detach(&v->pool->members, target);
	for (uint32_t i = 0; i < v->core.nr_extents; i++) {
		for (uint8_t slot = 0; slot < v->core.slots; slot++) {
			if (v->extents[i].replica[slot].donor == target)
				*weir_volume_region(v, i, slot) = NULL;
		}
	}
	weir_volume_unlock(v);
}

/* Gives a region back. It stays at the donor if its member, still in the map, will use it again. */
static void give_back(struct weir_volume *v, const struct weir_extents_placement *place,
		      struct weir_region *region)
{
	struct weir_members *m = &v->pool->members;
	struct weir_session *session = v->targets[place->donor].session;
	char name[WEIR_REGION_NAME_MAX + 1];
	bool is_member;

	weir_volume_lock(v);
	is_member = weir_members_at(m, place->extent, place->slot);
	name_region(v, place->extent, weir_members_copy(m, place->extent, place->slot)->joined,
		    name);
	weir_volume_unlock(v);
	if (!is_member)
		weir_region_delete(session, name, NULL);
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
			weir_members_copy(&v->pool->members, place.extent, place.slot)
				->is_attached = false;
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

static uint64_t region_bytes(const struct weir_volume *v)
{
	return v->coded ? (uint64_t)weir_coded_shard_pages(&v->coded->layout) *
				  WEIR_VOLUME_PAGE_BYTES :
			  weir_volume_extent_bytes(v);
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
	rc = weir_region_create(session, name, region_bytes(v), 0, region, error);
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
	/* A key without the right to the memory is no fault of the donor's, either. */
	if (rc == -ENOSPC || rc == -EDQUOT || rc == -EACCES) {
		v->pool->refusal = rc;
		v->pool->reason = *reason;
	} else {
		target->is_failed = true;
	}
	weir_volume_unlock(v);
}

static bool has_failed(struct weir_volume *v, const struct weir_volume_target *target)
{
	bool is_failed;

	weir_volume_lock(v);
	is_failed = target->is_failed;
	weir_volume_unlock(v);
	return is_failed;
}

static uint64_t connected_donors(const struct weir_volume *v)
{
	uint64_t donors = 0;

	for (unsigned int i = 0; i < v->nr_targets; i++)
		donors |= (uint64_t)(v->targets[i].session != NULL) << i;
	return donors;
}

/* Opens the region of a member's copy, which may be new. */
static void attach(struct weir_volume *v, const struct weir_extents_placement *place,
		   const struct weir_member *member, bool is_new)
{
	struct weir_volume_target *target = &v->targets[place->donor];
	struct weir_region *region = NULL;
	struct weir_error reason = { "" };
	char name[WEIR_REGION_NAME_MAX + 1];
	bool was_created = is_new;
	int rc;

	name_region(v, place->extent, member->joined, name);
	rc = open_region(v, target->session, name, &region, &was_created, &reason);
	/* Records that an earlier client left in a shard that does not count must not come back. */
	if (!rc && v->coded && is_new && !was_created && !member->counts) {
		rc = weir_volume_coded_clear(v, region);
		if (rc)
			weir_region_close(region);
	}
	if (rc) {
		note_refusal(v, target, rc, &reason);
		return;
	}
	weir_volume_lock(v);
	*weir_volume_region(v, place->extent, place->slot) = region;
	weir_members_attach(&v->pool->members, place, member, is_new, !was_created);
	if (v->coded && is_new)
		weir_coded_join(&v->coded->layout, &v->coded->extent[place->extent], place->slot);
	weir_volume_unlock(v);
}

static void attach_all(struct weir_volume *v, uint32_t extent)
{
	struct weir_extents_placement place;
	struct weir_member member;
	bool is_new, any;
	uint16_t tried = 0;

	do {
		weir_volume_lock(v);
		any = weir_members_next(&v->pool->members, extent, connected_donors(v), &tried,
					&place, &member, &is_new);
		weir_volume_unlock(v);
		if (any && !(is_new && has_failed(v, &v->targets[place.donor])))
			attach(v, &place, &member, is_new);
	} while (any);
}

/* Return: whether the store still has the groups as they are in use. */
static bool is_latest(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	struct weir_pool_map *now = calloc(1, sizeof(*now));
	bool is_same = now && !weir_pool_client_read(p->reporter, now, NULL) &&
		       now->id == p->pool_id; /* and not another pool of the same name */

	for (uint32_t i = 0; is_same && i < v->core.nr_extents; i++)
		is_same = now->group[p->group[i]].version == p->map->group[p->group[i]].version;
	free(now);
	return is_same;
}

/*
 * Serving members get memory before the first request. So where none of them had any, there is no
 * data. But a donor that is no member any more takes its memory back: see reclaim.h. So the map
 * must still be the same after the regions were opened.
 */
static bool is_proven(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;

	if (p->proof_moves != p->members.moves) {
		p->proof_moves = p->members.moves;
		p->is_proven = is_latest(v);
	}
	return p->is_proven;
}

/* @counting, @found: of a code, what to recover from, or 0. Return: as weir_members_open(). */
static int find_source(struct weir_volume *v, uint32_t extent, bool has_proof, uint16_t *counting,
		       uint16_t *found)
{
	struct weir_members *m = &v->pool->members;
	int rc;

	*counting = *found = 0;
	weir_volume_lock(v);
	rc = v->coded ? weir_members_open_coded(m, extent, has_proof, counting, found) :
			weir_members_open(m, extent, has_proof);
	weir_volume_unlock(v);
	return rc;
}

/* Return: whether the extent has a source. */
static bool open_extent(struct weir_volume *v, uint32_t extent)
{
	uint16_t counting, found;
	int rc = find_source(v, extent, false, &counting, &found);
	bool is_open;

	if (rc == -ENODATA && is_proven(v))
		rc = find_source(v, extent, true, &counting, &found);
	if (rc == -EIO && !v->pool->is_open)
		weir_volume_pool_end(v, -EIO);
	if (rc || !counting)
		return !rc;
	weir_volume_coded_recover(v, extent, counting, found);
	weir_volume_lock(v);
	is_open = weir_extents_count_valid(&v->core, extent);
	weir_volume_unlock(v);
	return is_open;
}

bool weir_volume_pool_is_equal(struct weir_volume *v, uint32_t extent)
{
	return weir_members_are_equal(&v->pool->members, extent);
}

static bool are_equal(struct weir_volume *v)
{
	bool are_equal;

	weir_volume_lock(v);
	are_equal = v->pool->members.nr_equal == v->core.nr_extents;
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
		is_equal = weir_members_are_equal(&v->pool->members, i);
		weir_volume_unlock(v);
		is_open &= is_equal || open_extent(v, i);
	}
	weir_volume_lock(v);
	v->pool->is_open |= is_open;
	weir_volume_unlock(v);
}

/* The share of an extent that a shard has. */
static uint64_t filled_pages(const void *arg, uint32_t extent, uint8_t slot)
{
	const struct weir_volume *v = arg;
	const struct weir_coded_layout *layout = &v->coded->layout;
	const struct weir_coded_extent *c = &v->coded->extent[extent];
	uint32_t all = weir_coded_count(layout, c);

	return all ? (uint64_t)v->core.pages * weir_coded_count_at(layout, c, slot) / all : 0;
}

unsigned int weir_volume_pool_progress(struct weir_volume *v)
{
	uint64_t done, all;

	weir_volume_lock(v);
	weir_members_progress(&v->pool->members, filled_pages, v, &done, &all);
	weir_volume_unlock(v);
	return all ? (unsigned int)(done * 100 / all) : 100;
}

/* Members that joined an extent without data later are whole, too, if their memory is new. */
static void trust_new(struct weir_volume *v, uint32_t extent)
{
	weir_volume_lock(v);
	if (v->coded)
		weir_volume_coded_trust(v, extent);
	else
		weir_members_trust_new(&v->pool->members, extent);
	weir_volume_unlock(v);
}

/* Finds the syncing members that have all data of the volume. */
static void find_ready(struct weir_volume *v)
{
	struct weir_volume_pool *p = v->pool;
	const struct weir_pool_table *table =
		weir_pool_map_table(p->map, weir_pool_map_volume(p->map, p->name)->scheme);

	weir_volume_lock(v);
	for (uint16_t i = table->first; i < table->first + table->count; i++) {
		memset(p->ready[i], 0, sizeof(p->ready[i]));
		for (uint8_t j = 0; j < p->groups[i].nr; j++) {
			const struct weir_member *m = &p->groups[i].member[j];

			if (!m->serves && m->shard < WEIR_POOL_WIDTH_MAX &&
			    weir_members_is_ready(&p->members, i, m))
				p->ready[i][m->shard] = m->joined;
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
	take_groups(v);
	for (uint32_t i = 0; i < v->core.nr_extents; i++) {
		weir_volume_lock(v);
		weir_members_leave(&v->pool->members, i);
		weir_volume_unlock(v);
	}
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
