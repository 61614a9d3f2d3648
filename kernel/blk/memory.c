// SPDX-License-Identifier: GPL-2.0-only
#include <linux/log2.h>
#include <linux/slab.h>

#include "kernel/blk/local.h"
#include "kernel/blk/memory.h"

/* A volume has 64 to 128 extents, so that each donor gets a share. */
#define EXTENTS 64
#define EXTENT_BYTES_MIN SZ_1M
#define NO_SHIFT 63 /* one extent, of any size */
#define ZEROED_PAGES_MAX 4096u /* per hold of the lock */

static u32 extents_of(const struct weir_blk_volume *volume, u64 bytes)
{
	return (bytes + (1ull << volume->shift) - 1) >> volume->shift;
}

int weir_blk_memory_init(struct weir_blk_volume *volume, const struct weir_blk_setup *setup)
{
	u32 nr_extents = 1, pages = 1;
	int rc;

	volume->shift = NO_SHIFT;
	if (!setup->name[0]) {
		u64 bytes = roundup_pow_of_two(DIV_ROUND_UP_ULL(setup->bytes, 2 * EXTENTS));

		bytes = max_t(u64, bytes, EXTENT_BYTES_MIN);
		volume->shift = ilog2(bytes);
		nr_extents = extents_of(volume, setup->bytes);
		pages = bytes >> PAGE_SHIFT;
	}
	volume->extents = kvcalloc(nr_extents, sizeof(*volume->extents), GFP_KERNEL);
	if (!volume->extents)
		return -ENOMEM;
	rc = weir_extents_init(&volume->core, volume->extents, nr_extents, pages, setup->nr_donors,
			       setup->replicas);
	if (rc)
		return rc;
	volume->regions =
		kvcalloc(nr_extents * volume->core.slots, sizeof(*volume->regions), GFP_KERNEL);
	return volume->regions ? 0 : -ENOMEM;
}

static void free_sums(struct weir_extent *extents, u32 first, u32 end)
{
	for (; extents && first < end; first++) {
		kvfree(extents[first].sum);
		kvfree(extents[first].local);
	}
}

void weir_blk_memory_fini(struct weir_blk_volume *volume)
{
	free_sums(volume->extents, 0, volume->core.nr_extents);
	kvfree(volume->extents);
	kvfree(volume->regions);
}

/* Allocates checksums, of @pages each, for new extents, and the state of a local disk. */
static int make_sums(struct weir_extent *extents, u32 first, u32 end, u64 pages, bool local)
{
	for (; first < end; first++) {
		extents[first].sum = kvcalloc(pages, sizeof(u32), GFP_KERNEL);
		if (!extents[first].sum)
			return -ENOMEM;
		if (!local)
			continue;
		extents[first].local = kvcalloc(DIV_ROUND_UP(pages, 64), sizeof(u64), GFP_KERNEL);
		if (!extents[first].local)
			return -ENOMEM;
	}
	return 0;
}

static int no_memory_for_sums(struct kweir_error *error)
{
	return kweir_fail(error, -ENOMEM, "no memory for the checksums: 1 MiB for each GiB");
}

/*
 * Records a donor's reply to a memory request. A stopped donor still serves reads and writes
 * without its process, but a request for each piece would block the caller for minutes. So the
 * volume prefers other donors, and retries a silent donor only once in a while.
 */
static void note_answer(struct weir_blk_volume *volume, u8 donor, int rc)
{
	struct weir_blk_target *target = &volume->target[donor];

	target->is_silent = kweir_is_no_answer(rc);
	if (!target->is_silent)
		return;
	target->ask_again = jiffies;
	if (rc != -EINTR) /* -EINTR concerns the caller, not the donor */
		target->ask_again += msecs_to_jiffies(weir_blk_volume_patience_ms(volume));
	spin_lock_bh(&volume->lock);
	if (volume->core.donor[donor].state == WEIR_EXTENTS_DONOR_UP)
		weir_extents_donor_slow(&volume->core, donor);
	spin_unlock_bh(&volume->lock);
}

int weir_blk_memory_query_room(struct weir_blk_volume *volume, u8 donor, struct kweir_error *error)
{
	u64 bytes;
	int rc;

	rc = kweir_session_room(volume->target[donor].session, &bytes, error);
	note_answer(volume, donor, rc);
	if (rc)
		return rc;
	/* The last extent may turn out too large for the room. */
	spin_lock_bh(&volume->lock);
	weir_extents_donor_room(&volume->core, donor,
				(bytes >> volume->shift) + !!weir_blk_volume_within(volume, bytes));
	spin_unlock_bh(&volume->lock);
	return 0;
}

void weir_blk_memory_retry_silent(struct weir_blk_volume *volume)
{
	u8 i, first = volume->core.nr_donors;

	for (i = 0; i < volume->core.nr_donors; i++) {
		const struct weir_blk_target *target = &volume->target[i];

		if (!target->is_silent || !target->session ||
		    time_before(jiffies, target->ask_again))
			continue;
		if (first == volume->core.nr_donors ||
		    time_before(target->ask_again, volume->target[first].ask_again))
			first = i;
	}
	if (first < volume->core.nr_donors && !weir_blk_memory_query_room(volume, first, NULL))
		weir_blk_volume_kick(volume);
}

/* A donor that does not know a hold has closed the hold in a call whose reply came too late. */
static bool return_to_donor(struct weir_blk_volume *volume, u8 donor, struct kweir_region *region)
{
	int rc = kweir_region_close(region, NULL);

	note_answer(volume, donor, rc);
	return !kweir_is_no_answer(rc);
}

/* Borrows memory from a donor for @place. */
static int request_memory(struct weir_blk_volume *volume, struct weir_extents_placement *place,
			  struct kweir_error *error)
{
	struct kweir_region region;
	int rc, wanted = 0;

	rc = kweir_region_create(volume->target[place->donor].session, NULL, 1ull << volume->shift,
				 &region, error);
	note_answer(volume, place->donor, rc);
	spin_lock_bh(&volume->lock);
	if (rc && !kweir_is_no_answer(rc))
		weir_extents_donor_room(&volume->core, place->donor, 0);
	else if (!rc)
		wanted = weir_extents_granted(&volume->core, place);
	if (!rc && !wanted)
		*weir_blk_volume_region(volume, place->extent, place->slot) = region;
	spin_unlock_bh(&volume->lock);
	if (wanted)
		return_to_donor(volume, place->donor, &region);
	else if (!rc)
		weir_blk_volume_memory_came(volume);
	return rc;
}

int weir_blk_memory_fetch(struct weir_blk_volume *volume, struct kweir_error *error)
{
	struct weir_extents_placement place;
	int rc;

	for (;;) {
		spin_lock_bh(&volume->lock);
		rc = weir_extents_next_placement(&volume->core, &place);
		spin_unlock_bh(&volume->lock);
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		request_memory(volume, &place, error);
	}
}

/* Donors that can be told now, if @tell, and donors that need not be told. With the lock held. */
static u8 choose_donors(const struct weir_blk_volume *volume, bool tell)
{
	u8 i, donors = 0;

	for (i = 0; i < volume->core.nr_donors; i++) {
		u8 state = volume->core.donor[i].state;

		if (state == WEIR_EXTENTS_DONOR_DOWN || (tell && state == WEIR_EXTENTS_DONOR_UP))
			donors |= 1 << i;
	}
	return donors;
}

bool weir_blk_memory_return(struct weir_blk_volume *volume, bool tell)
{
	struct weir_extents_placement place;
	struct kweir_region region;
	bool is_any_returned = false;

	for (;;) {
		bool is_there = false, is_returned, any;

		spin_lock_bh(&volume->lock);
		weir_extents_trim(&volume->core);
		any = weir_extents_next_return(&volume->core, choose_donors(volume, tell), &place);
		if (any) {
			region = *weir_blk_volume_region(volume, place.extent, place.slot);
			is_there = volume->core.donor[place.donor].state != WEIR_EXTENTS_DONOR_DOWN;
		}
		spin_unlock_bh(&volume->lock);
		if (!any)
			return is_any_returned;
		is_returned = !is_there || return_to_donor(volume, place.donor, &region);
		is_any_returned |= is_returned;
		spin_lock_bh(&volume->lock);
		weir_extents_returned(&volume->core, &place, is_returned);
		spin_unlock_bh(&volume->lock);
	}
}

/* Opens or creates the named region: the volume's only extent. */
static int borrow_named(struct weir_blk_volume *volume, struct kweir_error *error)
{
	struct kweir_session *session = volume->target[0].session;
	struct kweir_region *region = volume->regions;
	int rc = kweir_region_open(session, volume->name, region, error);

	if (rc == -ENOENT && volume->bytes)
		rc = kweir_region_create(session, volume->name, volume->bytes, region, error);
	if (rc)
		return rc;
	if (volume->bytes && volume->bytes != region->length)
		return kweir_fail(
			error, -EINVAL,
			"region %s has %llu bytes, not %llu: omit the size, or choose another name",
			volume->name, region->length, volume->bytes);
	if (!IS_ALIGNED(region->length, PAGE_SIZE) || region->length > WEIR_BLK_VOLUME_BYTES_MAX)
		return kweir_fail(
			error, -EINVAL,
			"region %s has %llu bytes, which is no multiple of %lu, or more than %llu",
			volume->name, region->length, PAGE_SIZE, WEIR_BLK_VOLUME_BYTES_MAX);
	volume->bytes = region->length;
	if (make_sums(volume->extents, 0, 1, volume->bytes >> PAGE_SHIFT, false))
		return no_memory_for_sums(error);
	weir_extents_adopt(&volume->core, volume->extents[0].sum, volume->bytes >> PAGE_SHIFT);
	return 0;
}

static int no_room(const struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error)
{
	struct weir_extents_census census = weir_extents_census(&volume->core);

	if (error->text[0])
		return -ENOSPC;
	return kweir_fail(
		error, -ENOSPC,
		"the donors have no room: %u of %u pieces of %llu KiB found all their replicas",
		census.whole, extents_of(volume, bytes), 1ull << volume->shift >> 10);
}

int weir_blk_memory_borrow(struct weir_blk_volume *volume, struct kweir_error *error)
{
	if (volume->name[0])
		return borrow_named(volume, error);
	if (weir_blk_memory_fetch(volume, error))
		return no_room(volume, volume->bytes, error);
	if (make_sums(volume->extents, 0, volume->core.nr_extents, volume->core.pages,
		      volume->local))
		return no_memory_for_sums(error);
	return 0;
}

int weir_blk_memory_provide(struct weir_blk_volume *volume, u32 extent)
{
	u32 from;
	u8 slot;
	int rc = weir_extents_provide(&volume->core, extent, &from);

	if (!rc && from != extent)
		weir_blk_volume_kick(volume); /* fills up the reserve */
	for (slot = 0; !rc && from != extent && slot < volume->core.slots; slot++)
		swap(*weir_blk_volume_region(volume, extent, slot),
		     *weir_blk_volume_region(volume, from, slot));
	return rc;
}

void weir_blk_memory_zero(struct weir_blk_volume *volume, u64 offset, u64 bytes, bool keep)
{
	u64 first = offset >> PAGE_SHIFT, end = (offset + bytes) >> PAGE_SHIFT;

	while (first < end) {
		u32 extent = weir_blk_volume_extent(volume, first << PAGE_SHIFT);
		u32 page = weir_blk_volume_within(volume, first << PAGE_SHIFT) >> PAGE_SHIFT;
		u64 pages =
			min3(end - first, (u64)volume->core.pages - page, (u64)ZEROED_PAGES_MAX);

		spin_lock_bh(&volume->lock);
		weir_extents_discard(&volume->core, extent, page, pages, keep);
		spin_unlock_bh(&volume->lock);
		first += pages;
	}
}

/* Installs longer arrays, with checksums allocated; frees the old arrays. */
static int grow_arrays(struct weir_blk_volume *volume, u32 nr_extents)
{
	u32 old = volume->core.nr_extents;
	struct weir_extent *extents = kvcalloc(nr_extents, sizeof(*extents), GFP_KERNEL);
	struct kweir_region *regions =
		kvcalloc(nr_extents * volume->core.slots, sizeof(*regions), GFP_KERNEL);

	if (!extents || !regions ||
	    make_sums(extents, old, nr_extents, volume->core.pages, volume->local)) {
		free_sums(extents, old, nr_extents);
		kvfree(extents);
		kvfree(regions);
		return -ENOMEM;
	}
	spin_lock_bh(&volume->lock);
	memcpy(extents, volume->extents, old * sizeof(*extents));
	memcpy(regions, volume->regions, old * volume->core.slots * sizeof(*regions));
	swap(extents, volume->extents);
	swap(regions, volume->regions);
	weir_extents_grow(&volume->core, volume->extents, nr_extents);
	spin_unlock_bh(&volume->lock);
	kvfree(extents);
	kvfree(regions);
	return 0;
}

/*
 * Refuses a growth far beyond the donors' room before starting. Small errors are tolerated: the
 * last extent may not fit into the room, and the reserve has memory already.
 */
static bool is_too_much(struct weir_blk_volume *volume, u32 nr_more)
{
	u64 wanted = (u64)nr_more * volume->core.replicas;
	u64 there = (u64)volume->core.reserve * volume->core.slots;
	u8 i;

	for (i = 0; i < volume->core.nr_donors; i++) {
		if (volume->core.donor[i].state != WEIR_EXTENTS_DONOR_UP)
			continue;
		weir_blk_memory_query_room(volume, i, NULL);
		spin_lock_bh(&volume->lock);
		there += volume->core.donor[i].free;
		spin_unlock_bh(&volume->lock);
	}
	return wanted > there;
}

/* New extents need memory, like the extents of a newly attached device. */
static int grow_volume(struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error)
{
	u32 nr_extents = extents_of(volume, bytes);
	u64 old = (u64)extents_of(volume, volume->bytes) << volume->shift;
	u64 end = (u64)nr_extents << volume->shift;

	if (weir_blk_local_is_too_small(volume->local, bytes))
		return kweir_fail(error, -ENOSPC, "the local disk is smaller than that");
	if (is_too_much(volume, nr_extents - extents_of(volume, volume->bytes)))
		return no_room(volume, bytes, error);
	if (nr_extents > volume->core.nr_extents && grow_arrays(volume, nr_extents))
		return no_memory_for_sums(error);
	if (end > old)
		weir_blk_memory_zero(volume, old, end - old, true);
	if (!weir_blk_memory_fetch(volume, error))
		return 0;
	no_room(volume, bytes, error);
	if (end > old)
		weir_blk_memory_zero(volume, old, end - old, false);
	weir_blk_memory_return(volume, true);
	return -ENOSPC;
}

int weir_blk_memory_resize(struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error)
{
	u64 end = (u64)extents_of(volume, volume->bytes) << volume->shift;
	int rc = 0;

	if (bytes > volume->bytes)
		rc = grow_volume(volume, bytes, error);
	else
		weir_blk_memory_zero(volume, bytes, end - bytes, false);
	if (!rc)
		volume->bytes = bytes;
	return rc;
}
