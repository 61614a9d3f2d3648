// SPDX-License-Identifier: GPL-2.0-only
#include <linux/slab.h>

#include "kernel/blk/memory.h"
#include "kernel/blk/pool/pool.h"

static bool is_layout_sound(const struct weir_blk_layout *layout)
{
	return layout->unit && layout->width && layout->groups &&
	       layout->groups <= WEIR_BLK_GROUPS_MAX && layout->extent_pages >= layout->unit &&
	       !(layout->extent_pages % layout->unit) &&
	       layout->extent_pages <= WEIR_BLK_VOLUME_BYTES_MAX >> PAGE_SHIFT;
}

static int check_setup(const struct weir_blk_setup *setup, struct kweir_error *error)
{
	const struct weir_blk_pool_setup *of = setup->pool;
	const struct weir_blk_layout *layout = &of->layout;
	u64 extents;
	u32 i;

	if (setup->nr_donors || setup->name[0] || setup->local || setup->encrypt ||
	    setup->reserve_bytes)
		return kweir_fail(error, -EINVAL,
				  "a pool's volume has no donors of its own, no region's name, no "
				  "local disk, no encryption and no reserve");
	if (!setup->bytes || !IS_ALIGNED(setup->bytes, PAGE_SIZE) ||
	    setup->bytes > WEIR_BLK_VOLUME_BYTES_MAX)
		return kweir_fail(error, -EINVAL, "%llu bytes: a multiple of %lu, at most %llu",
				  setup->bytes, PAGE_SIZE, WEIR_BLK_VOLUME_BYTES_MAX);
	if (setup->replicas < 1 || setup->replicas > WEIR_EXTENTS_REPLICAS_MAX)
		return kweir_fail(error, -EINVAL, "%u copies: 1 to %u", setup->replicas,
				  WEIR_EXTENTS_REPLICAS_MAX);
	if (!is_layout_sound(layout))
		return kweir_fail(error, -EINVAL, "the layout of the volume is malformed");
	extents = weir_stripe_extents(&(struct weir_stripe){ layout->unit, layout->width,
							     layout->extent_pages },
				      setup->bytes >> PAGE_SHIFT);
	if (extents != of->nr_extents || extents > WEIR_BLK_EXTENTS_MAX)
		return kweir_fail(error, -EINVAL, "%llu pieces: at most %u", extents,
				  WEIR_BLK_EXTENTS_MAX);
	for (i = 0; i < of->nr_extents; i++) {
		if (of->group_of[i] >= layout->groups)
			return kweir_fail(error, -EINVAL, "piece %u has no group", i);
	}
	return 0;
}

static int alloc_copies(struct weir_blk_pool *pool, const struct weir_extents *extents)
{
	pool->copies = kvcalloc((size_t)extents->nr_extents * extents->slots, sizeof(*pool->copies),
				GFP_KERNEL);
	pool->group_of = kvcalloc(extents->nr_extents, sizeof(*pool->group_of), GFP_KERNEL);
	pool->equal = kvcalloc(extents->nr_extents, sizeof(*pool->equal), GFP_KERNEL);
	return pool->copies && pool->group_of && pool->equal ? 0 : -ENOMEM;
}

int weir_blk_pool_open(struct weir_blk_volume *volume, const struct weir_blk_setup *setup,
		       struct kweir_error *error)
{
	const struct weir_blk_pool_setup *of = setup->pool;
	struct weir_blk_pool *pool;
	int rc = check_setup(setup, error);

	if (rc)
		return rc;
	pool = kvzalloc(sizeof(*pool), GFP_KERNEL);
	volume->pool = pool;
	if (!pool)
		return kweir_fail(error, -ENOMEM, "out of memory");
	strscpy(pool->name, of->name, sizeof(pool->name));
	pool->layout = of->layout;
	memcpy(pool->agent, of->agent, of->agent_bytes);
	pool->agent_bytes = of->agent_bytes;
	volume->stripe =
		(struct weir_stripe){ of->layout.unit, of->layout.width, of->layout.extent_pages };
	rc = weir_blk_memory_init_mapped(volume, of->nr_extents, setup->replicas);
	if (!rc)
		rc = alloc_copies(pool, &volume->core);
	if (!rc)
		rc = weir_blk_map_new(NULL, 0, NULL, 0, of->layout.groups, &pool->map, error);
	if (rc)
		return kweir_fail(error, rc, "no memory for a volume of %llu bytes", setup->bytes);
	memcpy(pool->group_of, of->group_of, of->nr_extents * sizeof(*of->group_of));
	pool->members = (struct weir_members){
		.extents = &volume->core,
		.copy = pool->copies,
		.group = pool->map->group,
		.group_of = pool->group_of,
		.equal = pool->equal,
	};
	return 0;
}

void weir_blk_pool_close(struct weir_blk_volume *volume)
{
	struct weir_blk_pool *pool = volume->pool;

	if (!pool)
		return;
	weir_blk_map_free(pool->map);
	weir_blk_map_free(pool->fresh);
	kvfree(pool->copies);
	kvfree(pool->group_of);
	kvfree(pool->equal);
	kvfree(pool);
}

struct weir_blk_map *weir_blk_pool_set_map(struct weir_blk_volume *volume, struct weir_blk_map *map)
{
	struct weir_blk_pool *pool = volume->pool;
	struct weir_blk_map *unused;

	spin_lock_bh(&volume->lock);
	unused = pool->fresh;
	pool->fresh = map;
	pool->agent_bytes = map->agent_bytes;
	memcpy(pool->agent, map->agent, map->agent_bytes);
	spin_unlock_bh(&volume->lock);
	if (map->flags & WEIR_BLK_MAP_OVER)
		weir_blk_pool_end(volume);
	weir_blk_volume_kick(volume);
	return unused;
}

void weir_blk_pool_end(struct weir_blk_volume *volume)
{
	bool is_news;

	spin_lock_bh(&volume->lock);
	is_news = !volume->pool->is_over;
	volume->pool->is_over = true;
	spin_unlock_bh(&volume->lock);
	if (is_news)
		pr_err("weir: another client has opened %s: all requests fail\n",
		       volume->pool->name);
}

void weir_blk_pool_refused(struct weir_blk_volume *volume, const struct kweir_error *reason)
{
	spin_lock_bh(&volume->lock);
	volume->pool->refusal = *reason;
	spin_unlock_bh(&volume->lock);
}

bool weir_blk_pool_is_equal(struct weir_blk_volume *volume)
{
	struct weir_blk_pool *pool = volume->pool;
	bool is_equal;

	spin_lock_bh(&volume->lock);
	is_equal = pool->members.nr_equal == volume->core.nr_extents && !pool->is_over;
	spin_unlock_bh(&volume->lock);
	return is_equal;
}

/* Notes syncing members that have all data; the agent reports them, and looks again. */
static void find_ready(struct weir_blk_volume *volume, struct weir_blk_look *look)
{
	const struct weir_members *m = &volume->pool->members;
	const struct weir_blk_map *map = volume->pool->map;
	u32 i, j;

	for (i = 0; i < map->nr_groups; i++) {
		for (j = 0; j < map->group[i].nr; j++) {
			const struct weir_member *member = &map->group[i].member[j];

			if (member->serves || look->nr_ready == WEIR_BLK_READY_MAX ||
			    !weir_members_is_ready(m, i, member))
				continue;
			look->ready[look->nr_ready++] =
				(struct weir_blk_ready){ .joined = member->joined, .group = i };
		}
	}
}

static u32 percent_of(const struct weir_members *m)
{
	u64 done, all;

	weir_members_progress(m, NULL, NULL, &done, &all);
	return all ? done * 100 / all : 100;
}

/* With the lock held. */
static u32 flags_of(const struct weir_blk_volume *volume)
{
	const struct weir_blk_pool *pool = volume->pool;

	return (pool->members.nr_equal == volume->core.nr_extents ? WEIR_BLK_LOOK_EQUAL : 0) |
	       (pool->is_unproven ? WEIR_BLK_LOOK_UNPROVEN : 0) |
	       (pool->is_over ? WEIR_BLK_LOOK_OVER : 0) | (pool->is_lost ? WEIR_BLK_LOOK_LOST : 0);
}

static_assert(WEIR_BLK_TARGETS_MAX <= 32);

u64 weir_blk_pool_findings(struct weir_blk_volume *volume)
{
	u64 failed = 0;
	u32 flags;
	u8 i;

	spin_lock_bh(&volume->lock);
	flags = flags_of(volume);
	for (i = 0; i < WEIR_BLK_TARGETS_MAX; i++)
		failed |= (u64)(volume->target[i].incarnation && volume->target[i].is_failed) << i;
	spin_unlock_bh(&volume->lock);
	return failed << 32 | flags;
}

void weir_blk_pool_look(struct weir_blk_volume *volume, struct weir_blk_look *look)
{
	struct weir_blk_pool *pool = volume->pool;
	unsigned int i;

	memset(look, 0, sizeof(*look));
	spin_lock_bh(&volume->lock);
	look->flags = flags_of(volume);
	look->proof = pool->members.moves;
	look->copied = volume->core.copied;
	look->percent = percent_of(&pool->members);
	look->refusal = pool->refusal;
	/* Before the copies are equal, new members have data of a source that may yet change. */
	if (look->flags & WEIR_BLK_LOOK_EQUAL)
		find_ready(volume, look);
	for (i = 0; i < WEIR_BLK_TARGETS_MAX; i++) {
		if (volume->target[i].incarnation && volume->target[i].is_failed)
			look->failed[look->nr_failed++] = volume->target[i].incarnation;
	}
	spin_unlock_bh(&volume->lock);
}

int weir_blk_pool_may_write(const struct weir_blk_volume *volume, u32 extent)
{
	if (volume->pool->is_over || !weir_extents_count_valid(&volume->core, extent))
		return -EIO;
	return weir_members_must_wait(&volume->pool->members, extent) ? -EAGAIN : 0;
}

u8 weir_blk_pool_missed(const struct weir_blk_volume *volume, u32 extent, u8 failed)
{
	u8 missed = 0, slot;

	for (slot = 0; slot < volume->core.slots; slot++) {
		if (volume->core.extent[extent].replica[slot].state == WEIR_REPLICA_VALID)
			missed |= failed & 1 << slot;
	}
	return missed;
}

int weir_blk_pool_must_read_again(const struct weir_blk_volume *volume, u32 extent, u8 wrong,
				  u8 *tried)
{
	u8 valid = weir_blk_pool_missed(volume, extent, U8_MAX);

	if (volume->pool->is_over || !(valid & ~wrong))
		return -EIO;
	*tried = wrong;
	return -EAGAIN;
}
