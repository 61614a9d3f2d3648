// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "kernel/blk/local.h"
#include "kernel/blk/memory.h"
#include "kernel/blk/pool/pool.h"
#include "kernel/blk/target.h"

#define NO_SHIFT 63 /* one extent, of any size */
#define ZEROED_PAGES_MAX 4096u /* per hold of the lock */

u32 weir_blk_memory_extents(const struct weir_blk_volume *volume, u64 bytes)
{
	return (bytes + (1ull << volume->shift) - 1) >> volume->shift;
}

int weir_blk_memory_init(struct weir_blk_volume *volume, const struct weir_blk_setup *setup)
{
	u32 nr_extents = 1, pages = 1;
	int rc;

	volume->shift = NO_SHIFT;
	if (!setup->name[0]) {
		volume->shift = ilog2(weir_extents_choose_bytes(setup->bytes, 1ull << NO_SHIFT));
		nr_extents = weir_blk_memory_extents(volume, setup->bytes);
		pages = 1u << (volume->shift - PAGE_SHIFT);
	}
	volume->extents = kvcalloc(nr_extents, sizeof(*volume->extents), GFP_KERNEL);
	if (!volume->extents)
		return -ENOMEM;
	rc = weir_extents_init(&volume->core, volume->extents, nr_extents, pages, setup->nr_donors,
			       setup->replicas);
	if (rc)
		return rc;
	weir_borrow_init(&volume->borrow, &volume->core, 1ull << volume->shift,
			 weir_blk_volume_answer_ms(volume) * (u64)NSEC_PER_MSEC);
	volume->regions =
		kvcalloc(nr_extents * volume->core.slots, sizeof(*volume->regions), GFP_KERNEL);
	return volume->regions ? 0 : -ENOMEM;
}

static void free_sums(struct weir_extent *extents, u32 first, u32 end)
{
	for (; extents && first < end; first++) {
		kvfree(extents[first].sum);
		kvfree(extents[first].seal);
		kvfree(extents[first].local);
	}
}

void weir_blk_memory_fini(struct weir_blk_volume *volume)
{
	free_sums(volume->extents, 0, volume->core.nr_extents);
	kvfree(volume->extents);
	kvfree(volume->regions);
}

/* Allocates checksums, of @pages each, for new extents, seals, and the state of a local disk. */
static int make_sums(const struct weir_blk_volume *volume, struct weir_extent *extents, u32 first,
		     u32 end, u64 pages)
{
	for (; first < end; first++) {
		extents[first].sum = kvcalloc(pages, sizeof(u32), GFP_KERNEL);
		if (!extents[first].sum)
			return -ENOMEM;
		if (volume->cipher.aead) {
			extents[first].seal =
				kvcalloc(pages, sizeof(*extents[first].seal), GFP_KERNEL);
			if (!extents[first].seal)
				return -ENOMEM;
		}
		if (!volume->local)
			continue;
		extents[first].local = kvcalloc(DIV_ROUND_UP(pages, 64), sizeof(u64), GFP_KERNEL);
		if (!extents[first].local)
			return -ENOMEM;
	}
	return 0;
}

int weir_blk_memory_init_mapped(struct weir_blk_volume *volume, u32 nr_extents, u8 replicas)
{
	int rc;

	volume->shift = PAGE_SHIFT + order_base_2(volume->stripe.extent);
	volume->extents = kvcalloc(nr_extents, sizeof(*volume->extents), GFP_KERNEL);
	if (!volume->extents)
		return -ENOMEM;
	rc = weir_extents_init(&volume->core, volume->extents, nr_extents, volume->stripe.extent,
			       WEIR_BLK_TARGETS_MAX, replicas);
	if (rc)
		return rc;
	volume->core.is_mapped = volume->core.repairs = true;
	volume->regions =
		kvcalloc(nr_extents * volume->core.slots, sizeof(*volume->regions), GFP_KERNEL);
	if (!volume->regions)
		return -ENOMEM;
	return make_sums(volume, volume->extents, 0, nr_extents, volume->core.pages);
}

static int no_memory_for_sums(struct kweir_error *error)
{
	return kweir_fail(error, -ENOMEM,
			  "no memory for the checksums: 1 MiB for each GiB, 7 MiB if encrypted");
}

int weir_blk_memory_query_room(struct weir_blk_volume *volume, u8 donor, struct kweir_error *error)
{
	u64 bytes = 0;
	int rc = kweir_session_room(volume->target[donor].session, &bytes, error);

	spin_lock_bh(&volume->lock);
	weir_borrow_room(&volume->borrow, donor, rc, bytes, ktime_get_ns());
	spin_unlock_bh(&volume->lock);
	return rc;
}

static void ask_memory(struct weir_blk_volume *volume, struct weir_extents_placement *place,
		       struct kweir_error *error)
{
	struct kweir_region region;
	bool is_placed;
	int rc;

	rc = kweir_region_create(volume->target[place->donor].session, NULL, 1ull << volume->shift,
				 &region, error);
	spin_lock_bh(&volume->lock);
	is_placed = weir_borrow_taken(&volume->borrow, place, rc, ktime_get_ns());
	if (is_placed)
		*weir_blk_volume_region(volume, place->extent, place->slot) = region;
	spin_unlock_bh(&volume->lock);
	if (is_placed)
		weir_blk_volume_memory_came(volume);
	if (rc || is_placed)
		return;
	rc = kweir_region_close(&region, NULL);
	spin_lock_bh(&volume->lock);
	weir_borrow_answered(&volume->borrow, place->donor, rc, ktime_get_ns());
	spin_unlock_bh(&volume->lock);
}

/*
 * If the donor does not know the hold, an earlier call closed it and its reply was lost: that is
 * success.
 */
static void give_back(struct weir_blk_volume *volume, const struct weir_borrow_step *step)
{
	struct kweir_region region;
	int rc = 0;

	spin_lock_bh(&volume->lock);
	region = *weir_blk_volume_region(volume, step->place.extent, step->place.slot);
	spin_unlock_bh(&volume->lock);
	if (step->op == WEIR_BORROW_GIVE_BACK)
		rc = kweir_region_close(&region, NULL);
	spin_lock_bh(&volume->lock);
	weir_borrow_returned(&volume->borrow, step, rc, ktime_get_ns());
	spin_unlock_bh(&volume->lock);
}

static void take_step(struct weir_blk_volume *volume, struct weir_borrow_step *step,
		      struct kweir_error *error)
{
	struct weir_blk_target *target = &volume->target[step->place.donor];

	switch ((enum weir_borrow_op)step->op) {
	case WEIR_BORROW_ASK_MEMORY:
		ask_memory(volume, &step->place, error);
		break;
	case WEIR_BORROW_ASK_ROOM:
		weir_blk_memory_query_room(volume, step->place.donor, NULL);
		break;
	case WEIR_BORROW_GIVE_BACK:
	case WEIR_BORROW_DROP:
		give_back(volume, step);
		break;
	case WEIR_BORROW_RECONNECT:
		weir_blk_target_close(target);
		weir_blk_target_connect_soon(target, WEIR_BLK_TARGET_JOIN_MS);
		break;
	case WEIR_BORROW_END:
		break;
	}
}

void weir_blk_memory_round(struct weir_blk_volume *volume, enum weir_borrow_phase first,
			   enum weir_borrow_phase last, struct kweir_error *error)
{
	struct weir_borrow_step step;

	weir_borrow_begin(&volume->borrow, first, last);
	do {
		spin_lock_bh(&volume->lock);
		weir_borrow_next(&volume->borrow, &step, ktime_get_ns());
		spin_unlock_bh(&volume->lock);
		take_step(volume, &step, error);
	} while (step.op != WEIR_BORROW_END && !READ_ONCE(volume->closing));
	if (volume->borrow.is_wanted)
		weir_blk_volume_kick(volume);
}

/* Return: whether all memory is there. */
static bool take_all(struct weir_blk_volume *volume, struct kweir_error *error)
{
	weir_blk_memory_round(volume, WEIR_BORROW_TAKE, WEIR_BORROW_TAKE, error);
	return !volume->borrow.is_short;
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
	if (make_sums(volume, volume->extents, 0, 1, volume->bytes >> PAGE_SHIFT))
		return no_memory_for_sums(error);
	weir_extents_adopt(&volume->core, volume->extents[0].sum, volume->bytes >> PAGE_SHIFT);
	return 0;
}

static int no_room(const struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error)
{
	struct weir_extents_census census = weir_extents_census(&volume->core);
	u8 donor = weir_borrow_scarcest(&volume->borrow);

	if (error->text[0])
		return -ENOSPC;
	return kweir_fail(
		error, -ENOSPC,
		"the donors have no room: %u of %u pieces of %llu KiB found all their replicas; "
		"%pISpc: offered %llu KiB",
		census.whole, weir_blk_memory_extents(volume, bytes), 1ull << volume->shift >> 10,
		&volume->target[donor].address, volume->borrow.donor[donor].room_bytes >> 10);
}

int weir_blk_memory_borrow(struct weir_blk_volume *volume, struct kweir_error *error)
{
	if (volume->name[0])
		return borrow_named(volume, error);
	if (!take_all(volume, error))
		return no_room(volume, volume->bytes, error);
	if (make_sums(volume, volume->extents, 0, volume->core.nr_extents, volume->core.pages))
		return no_memory_for_sums(error);
	return 0;
}

int weir_blk_memory_provide(struct weir_blk_volume *volume, u32 extent)
{
	u32 from;
	u8 slot;
	int rc;

	if (volume->pool)
		return weir_blk_pool_may_write(volume, extent);
	rc = weir_extents_provide(&volume->core, extent, &from);
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
	    make_sums(volume, extents, old, nr_extents, volume->core.pages)) {
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

/* Refuses a growth beyond the donors' room before starting. The reserve has memory already. */
static bool is_too_much(struct weir_blk_volume *volume, u32 nr_more)
{
	u64 wanted = (u64)nr_more * volume->core.replicas;
	u64 there = (u64)volume->core.reserve * volume->core.slots;
	u8 i;

	weir_blk_memory_round(volume, WEIR_BORROW_QUERY, WEIR_BORROW_QUERY, NULL);
	spin_lock_bh(&volume->lock);
	for (i = 0; i < volume->core.nr_donors; i++) {
		if (volume->core.donor[i].state == WEIR_EXTENTS_DONOR_UP)
			there += volume->core.donor[i].free;
	}
	spin_unlock_bh(&volume->lock);
	return wanted > there;
}

/* New extents need memory, like the extents of a newly attached device. */
static int grow_volume(struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error)
{
	u32 nr_extents = weir_blk_memory_extents(volume, bytes);
	u64 old = (u64)weir_blk_memory_extents(volume, volume->bytes) << volume->shift;
	u64 end = (u64)nr_extents << volume->shift;

	if (weir_blk_local_is_too_small(volume->local, bytes))
		return kweir_fail(error, -ENOSPC, "the local disk is smaller than that");
	if (is_too_much(volume, nr_extents - weir_blk_memory_extents(volume, volume->bytes)))
		return no_room(volume, bytes, error);
	if (nr_extents > volume->core.nr_extents && grow_arrays(volume, nr_extents))
		return no_memory_for_sums(error);
	if (end > old)
		weir_blk_memory_zero(volume, old, end - old, true);
	if (take_all(volume, error))
		return 0;
	no_room(volume, bytes, error);
	if (end > old)
		weir_blk_memory_zero(volume, old, end - old, false);
	weir_blk_memory_round(volume, WEIR_BORROW_RETURN, WEIR_BORROW_RETURN, NULL);
	return -ENOSPC;
}

int weir_blk_memory_resize(struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error)
{
	u64 end = (u64)weir_blk_memory_extents(volume, volume->bytes) << volume->shift;
	int rc = 0;

	if (bytes > volume->bytes)
		rc = grow_volume(volume, bytes, error);
	else
		weir_blk_memory_zero(volume, bytes, end - bytes, false);
	if (!rc)
		volume->bytes = bytes;
	return rc;
}
