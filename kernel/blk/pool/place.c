// SPDX-License-Identifier: GPL-2.0-only
/* Brings donors and copies of a pool's volume in line with the map: the maintenance work. */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "kernel/blk/device.h"
#include "kernel/blk/netlink.h"
#include "kernel/blk/pool/pool.h"
#include "kernel/blk/target.h"

static u8 find_target(const struct weir_blk_volume *volume, u64 incarnation)
{
	u8 i;

	for (i = 0; i < WEIR_BLK_TARGETS_MAX; i++) {
		if (volume->target[i].incarnation == incarnation)
			return i;
	}
	return WEIR_MEMBERS_NO_DONOR;
}

static bool has_address(const struct weir_blk_pool_donor *donor)
{
	struct sockaddr_storage address = {};

	memcpy(&address, donor->address, sizeof(donor->address));
	return address.ss_family == AF_INET || address.ss_family == AF_INET6;
}

/* Return: the target of a donor, or NO_DONOR: it has none yet. */
static u8 use_target(struct weir_blk_volume *volume, const struct weir_blk_pool_donor *donor)
{
	u8 number = find_target(volume, donor->incarnation);
	struct weir_blk_target *target;

	if (number != WEIR_MEMBERS_NO_DONOR || !has_address(donor))
		return number;
	number = find_target(volume, 0);
	if (number == WEIR_MEMBERS_NO_DONOR)
		return number;
	target = &volume->target[number];
	mutex_lock(&volume->sessions);
	memset(&target->address, 0, sizeof(target->address));
	memcpy(&target->address, donor->address, sizeof(donor->address));
	target->connect_status = 0;
	target->since = jiffies;
	mutex_unlock(&volume->sessions);
	spin_lock_bh(&volume->lock);
	target->incarnation = donor->incarnation;
	target->is_failed = false;
	spin_unlock_bh(&volume->lock);
	weir_blk_target_connect_soon(target, 0);
	return number;
}

/* Fills in the groups of a map for the core. With the lock held, if the map is in use. */
static void resolve(struct weir_blk_map *map)
{
	u32 i;

	for (i = 0; i < map->nr_groups; i++)
		map->group[i].nr = 0;
	for (i = 0; i < map->nr_members; i++) {
		const struct weir_blk_member *m = &map->member[i];
		struct weir_member_group *group = &map->group[m->group];

		group->member[group->nr++] = (struct weir_member){
			.joined = m->joined,
			.donor = map->target[m->donor],
			.serves = m->flags & WEIR_BLK_MEMBER_SERVES,
			.counts = m->flags & WEIR_BLK_MEMBER_COUNTS,
		};
	}
}

static void take_map(struct weir_blk_volume *volume)
{
	struct weir_blk_pool *pool = volume->pool;
	struct weir_blk_map *map, *old = NULL;
	u32 i;

	spin_lock_bh(&volume->lock);
	map = pool->fresh ?: pool->map;
	pool->fresh = NULL;
	spin_unlock_bh(&volume->lock);
	for (i = 0; i < map->nr_donors; i++)
		map->target[i] = use_target(volume, &map->donor[i]);
	spin_lock_bh(&volume->lock);
	resolve(map);
	if (map != pool->map) {
		old = pool->map;
		pool->map = map;
		pool->members.group = map->group;
		pool->members.is_blank = map->flags & WEIR_BLK_MAP_BLANK;
	}
	spin_unlock_bh(&volume->lock);
	weir_blk_map_free(old);
}

/* The session of a donor has ended, and with it the regions there. */
static void detach_donor(struct weir_blk_volume *volume, u8 number)
{
	u32 i;
	u8 slot;

	spin_lock_bh(&volume->lock);
	weir_members_detach(&volume->pool->members, number);
	for (i = 0; i < volume->core.nr_extents; i++) {
		for (slot = 0; slot < volume->core.slots; slot++) {
			if (volume->core.extent[i].replica[slot].donor == number)
				weir_blk_volume_region(volume, i, slot)->session = NULL;
		}
	}
	volume->target[number].is_failed = true;
	spin_unlock_bh(&volume->lock);
}

static bool are_copies_used(struct weir_blk_volume *volume, u8 number)
{
	bool used;

	spin_lock_bh(&volume->lock);
	used = weir_members_are_used(&volume->pool->members, number);
	spin_unlock_bh(&volume->lock);
	return used;
}

/* Return: whether the session can be used. Its requests end soon after it is lost. */
static bool check_session(struct weir_blk_volume *volume, u8 number)
{
	struct weir_blk_target *target = &volume->target[number];
	struct kweir_stat stat;

	kweir_session_set_answer_timeout(target->session, weir_blk_volume_answer_ms(volume));
	kweir_session_stat(target->session, &stat);
	if (stat.state != KWEIR_SESSION_LOST)
		return stat.state == KWEIR_SESSION_UP;
	detach_donor(volume, number);
	if (are_copies_used(volume, number)) {
		weir_blk_volume_kick_soon(volume);
		return false;
	}
	weir_blk_target_close(target);
	target->since = jiffies;
	return false;
}

static bool has_any_session(const struct weir_blk_volume *volume)
{
	bool any = false;
	u8 i;

	for (i = 0; i < WEIR_BLK_TARGETS_MAX; i++)
		any |= volume->target[i].session != NULL;
	return any;
}

/*
 * A donor whose host refuses the connection, or has another incarnation, has ended. A silent donor
 * is reported later. If no donor can be connected, this host is at fault; a donor that refuses the
 * key is not.
 */
static void check_absence(struct weir_blk_volume *volume, struct weir_blk_target *target)
{
	int status = READ_ONCE(target->connect_status);
	bool is_gone = status == -ECONNREFUSED || status == -ESTALE;
	bool is_late =
		time_after(jiffies, target->since + msecs_to_jiffies(volume->options.timeout_ms));

	if ((!is_gone && !is_late) || status == -EKEYREJECTED || !has_any_session(volume))
		return;
	spin_lock_bh(&volume->lock);
	target->is_failed = true;
	spin_unlock_bh(&volume->lock);
}

static void check_target(struct weir_blk_volume *volume, u8 number)
{
	struct weir_blk_target *target = &volume->target[number];
	unsigned int join_ms = WEIR_BLK_TARGET_JOIN_MS;
	bool is_up;

	/* If the donor has ended, its host refuses at once, and writes wait for that. */
	if (target->session && time_after(jiffies, target->since + msecs_to_jiffies(join_ms)))
		join_ms = 0;
	is_up = target->session && check_session(volume, number);
	if (!target->session) {
		weir_blk_target_connect_soon(target, join_ms);
		check_absence(volume, target);
	}
	spin_lock_bh(&volume->lock);
	if (is_up)
		weir_extents_donor_up(&volume->core, number);
	else
		weir_extents_donor_slow(&volume->core, number);
	spin_unlock_bh(&volume->lock);
}

static bool is_named(const struct weir_blk_volume *volume, u64 incarnation)
{
	const struct weir_blk_map *map = volume->pool->map;
	u32 i;

	for (i = 0; i < map->nr_donors; i++) {
		if (map->donor[i].incarnation == incarnation)
			return true;
	}
	return false;
}

/* A target whose donor is not in the pool any more, and has no copy, becomes free. */
static void remove_target(struct weir_blk_volume *volume, u8 number)
{
	struct weir_blk_target *target = &volume->target[number];
	bool has_copies;

	spin_lock_bh(&volume->lock);
	has_copies = weir_extents_donor_extents(&volume->core, number);
	spin_unlock_bh(&volume->lock);
	if (has_copies || !weir_blk_target_stop_connecting(target))
		return;
	weir_blk_target_close(target);
	spin_lock_bh(&volume->lock);
	target->incarnation = 0;
	target->is_failed = false;
	weir_extents_donor_slow(&volume->core, number);
	spin_unlock_bh(&volume->lock);
}

static void check_targets(struct weir_blk_volume *volume)
{
	u8 i;

	for (i = 0; i < WEIR_BLK_TARGETS_MAX; i++) {
		if (!volume->target[i].incarnation)
			continue;
		if (is_named(volume, volume->target[i].incarnation))
			check_target(volume, i);
		else if (volume->target[i].session && !check_session(volume, i))
			continue;
		else
			remove_target(volume, i);
	}
}

static void name_region(const struct weir_blk_pool *pool, u32 extent, u64 joined, char *text,
			size_t size)
{
	snprintf(text, size, WEIR_MEMBERS_REGION_NAME, (unsigned long long)pool->layout.pool,
		 (unsigned long long)pool->layout.volume, extent, (unsigned long long)joined);
}

/*
 * Gives a region back. It stays at the donor if its member, still in the map, will use it again. A
 * donor that does not answer takes it back by itself, once the volume is detached.
 */
static void give_back(struct weir_blk_volume *volume, const struct weir_extents_placement *place,
		      struct kweir_region *region)
{
	struct weir_blk_pool *pool = volume->pool;
	char name[WIRE_CONTROL_NAME_MAX + 1];
	struct kweir_stat stat;
	bool is_member;

	kweir_session_stat(region->session, &stat);
	if (stat.state != KWEIR_SESSION_UP)
		return;
	spin_lock_bh(&volume->lock);
	is_member = weir_members_at(&pool->members, place->extent, place->slot);
	spin_unlock_bh(&volume->lock);
	if (!is_member) {
		name_region(pool, place->extent,
			    weir_members_copy(&pool->members, place->extent, place->slot)->joined,
			    name, sizeof(name));
		kweir_region_delete(region->session, name, NULL);
	}
	kweir_region_close(region, NULL);
}

static void return_memory(struct weir_blk_volume *volume)
{
	struct weir_extents_placement place;
	struct kweir_region region;

	while (!READ_ONCE(volume->closing)) {
		bool any;

		spin_lock_bh(&volume->lock);
		any = weir_extents_next_return(&volume->core, U64_MAX, &place);
		if (any) {
			region = *weir_blk_volume_region(volume, place.extent, place.slot);
			weir_blk_volume_region(volume, place.extent, place.slot)->session = NULL;
			weir_members_copy(&volume->pool->members, place.extent, place.slot)
				->is_attached = false;
		}
		spin_unlock_bh(&volume->lock);
		if (!any)
			return;
		if (region.session)
			give_back(volume, &place, &region);
		spin_lock_bh(&volume->lock);
		weir_extents_returned(&volume->core, &place, true);
		spin_unlock_bh(&volume->lock);
	}
}

/*
 * Opens a region, and creates it before if it is not there and @is_new allows it. The hold of the
 * creation has no epoch, and ends with the opening. @is_new: receives whether it was created.
 */
static int open_region(struct weir_blk_volume *volume, struct kweir_session *session,
		       const char *name, struct kweir_region *region, bool *is_new,
		       struct kweir_error *error)
{
	u64 bytes = (u64)volume->core.pages << PAGE_SHIFT, epoch = volume->pool->layout.epoch;
	bool may_create = *is_new;
	int rc = kweir_region_open_fenced(session, name, epoch, region, error);

	*is_new = false;
	if (rc == -ENOENT && may_create) {
		rc = kweir_region_create(session, name, bytes, region, error);
		if (rc && rc != -EEXIST)
			return rc;
		*is_new = !rc;
		rc = kweir_region_open_fenced(session, name, epoch, region, error);
	}
	if (!rc && region->length != bytes)
		return kweir_fail(error, -EPROTO, "region %s has %llu bytes, not %llu", name,
				  region->length, bytes);
	return rc;
}

static void note_refusal(struct weir_blk_volume *volume, struct weir_blk_target *target, int rc,
			 const struct kweir_error *reason)
{
	if (rc == -EBUSY) { /* a client of a later epoch */
		weir_blk_pool_end(volume);
	} else if (rc == -ENOSPC || rc == -EDQUOT) {
		weir_blk_pool_refused(volume, reason);
	} else {
		spin_lock_bh(&volume->lock);
		target->is_failed = true;
		spin_unlock_bh(&volume->lock);
	}
	pr_warn_ratelimited("weir: %pISpc: %s (%d)\n", &target->address, reason->text, rc);
}

/* Return: a bit for each donor that can be asked for regions. With the lock held. */
static u64 usable_donors(const struct weir_blk_volume *volume)
{
	u64 usable = 0;
	u8 i;

	for (i = 0; i < WEIR_BLK_TARGETS_MAX; i++) {
		if (volume->target[i].session && !volume->target[i].is_failed &&
		    volume->core.donor[i].state == WEIR_EXTENTS_DONOR_UP)
			usable |= 1ull << i;
	}
	return usable;
}

static void attach(struct weir_blk_volume *volume, const struct weir_extents_placement *place,
		   const struct weir_member *member, bool is_new)
{
	struct weir_blk_target *target = &volume->target[place->donor];
	char name[WIRE_CONTROL_NAME_MAX + 1];
	struct kweir_region region;
	struct kweir_error reason = {};
	bool was_created = is_new;
	int rc;

	name_region(volume->pool, place->extent, member->joined, name, sizeof(name));
	rc = open_region(volume, target->session, name, &region, &was_created, &reason);
	if (rc) {
		note_refusal(volume, target, rc, &reason);
		return;
	}
	spin_lock_bh(&volume->lock);
	*weir_blk_volume_region(volume, place->extent, place->slot) = region;
	weir_members_attach(&volume->pool->members, place, member, is_new, !was_created);
	spin_unlock_bh(&volume->lock);
}

static void attach_all(struct weir_blk_volume *volume, u32 extent)
{
	struct weir_extents_placement place;
	struct weir_member member;
	bool is_new, any;
	u16 tried = 0;

	do {
		spin_lock_bh(&volume->lock);
		any = !volume->pool->is_over &&
		      weir_members_next(&volume->pool->members, extent, usable_donors(volume),
					&tried, &place, &member, &is_new);
		spin_unlock_bh(&volume->lock);
		if (any)
			attach(volume, &place, &member, is_new);
	} while (any && !READ_ONCE(volume->closing));
}

/* Chooses sources, again if the first has died before the copies are equal. */
static void open_extents(struct weir_blk_volume *volume)
{
	struct weir_blk_pool *pool = volume->pool;
	struct weir_members *m = &pool->members;
	bool is_lost = false, is_unproven = false, is_proven;
	u32 i;

	if (!pool->map->nr_members)
		return; /* the agent has sent no map yet */
	is_proven = pool->map->flags & WEIR_BLK_MAP_PROVEN && pool->map->proof == m->moves;
	for (i = 0; i < volume->core.nr_extents; i++) {
		int rc = 0;

		spin_lock_bh(&volume->lock);
		if (!weir_members_are_equal(m, i))
			rc = weir_members_open(m, i, is_proven);
		is_lost |= rc == -EIO;
		is_unproven |= rc == -ENODATA;
		weir_members_trust_new(m, i);
		weir_members_are_equal(m, i);
		spin_unlock_bh(&volume->lock);
	}
	spin_lock_bh(&volume->lock);
	pool->is_lost = is_lost;
	pool->is_unproven = is_unproven;
	spin_unlock_bh(&volume->lock);
}

/* A write may wait until the agent has reported a donor. */
static void tell_agent(struct weir_blk_volume *volume)
{
	u64 findings = weir_blk_pool_findings(volume);

	if (findings == volume->pool->told)
		return;
	volume->pool->told = findings;
	weir_blk_netlink_tell(container_of(volume, struct weir_blk, volume)->number);
}

void weir_blk_pool_maintain(struct weir_blk_volume *volume)
{
	u32 i;

	take_map(volume);
	check_targets(volume);
	tell_agent(volume); /* before the talks with donors */
	for (i = 0; i < volume->core.nr_extents; i++) {
		spin_lock_bh(&volume->lock);
		weir_members_leave(&volume->pool->members, i);
		spin_unlock_bh(&volume->lock);
	}
	return_memory(volume);
	for (i = 0; i < volume->core.nr_extents && !READ_ONCE(volume->closing); i++)
		attach_all(volume, i);
	open_extents(volume);
	tell_agent(volume);
	weir_blk_volume_memory_came(volume); /* requests that wait look again */
}
