/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A volume of a pool: the pool's map says which donors hold the copies of an extent, and
 * core/volume/members.h decides what follows. A program in user space, the agent, reads the map.
 *
 * The module goes on with the newest map that it has. A read uses any copy that is VALID. A write
 * that a VALID copy has missed is not done: it waits, in its own tag, until that donor is connected
 * again, or a map comes in which the donor is no member. So each serving member has each completed
 * write, and the next client may read any of them. The failure of a request makes no copy STALE.
 *
 * The maintenance work applies maps, opens regions at the epoch of the claim, and notes donors that
 * fail. The agent looks at what it has found.
 */
#ifndef WEIR_KERNEL_BLK_POOL_POOL_H
#define WEIR_KERNEL_BLK_POOL_POOL_H

#include "core/volume/members.h"
#include "kernel/blk/volume.h"

/**
 * struct weir_blk_pool_setup - a volume of a pool
 * @name: POOL/VOLUME
 * @layout: as the agent has sent it
 * @group_of: of each of @nr_extents extents; borrowed for the call
 * @agent: @agent_bytes bytes that the module keeps for the next agent
 */
struct weir_blk_pool_setup {
	char name[WEIR_BLK_POOL_MAX + 1];
	struct weir_blk_layout layout;
	const u16 *group_of;
	u32 nr_extents;
	u8 agent[WEIR_BLK_AGENT_MAX];
	u32 agent_bytes;
};

/**
 * struct weir_blk_map - a map, as the agent has sent it
 * @donor, @target: of each donor, and its number in the volume or WEIR_MEMBERS_NO_DONOR
 * @member: in the order of groups
 * @group: the members of each group, for the core
 * @flags: WEIR_BLK_MAP_*; @proof: if PROVEN
 * @agent: replaces that of the setup
 */
struct weir_blk_map {
	u32 nr_donors, nr_members, nr_groups, flags;
	u64 proof;
	struct weir_blk_pool_donor donor[WEIR_BLK_POOL_DONORS_MAX];
	u8 target[WEIR_BLK_POOL_DONORS_MAX];
	struct weir_blk_member *member;
	struct weir_member_group *group;
	u8 agent[WEIR_BLK_AGENT_MAX];
	u32 agent_bytes;
};

/**
 * struct weir_blk_pool - the pool of a volume
 * @members: the copies; guarded by @volume->lock, like all that follows, unless noted
 * @map: in use; changed by the maintenance work only
 * @fresh: newer than @map, or NULL
 * @is_over: another client has the volume: nothing succeeds any more
 * @is_lost: a group has no member left that serves
 * @is_unproven: an extent without data waits for a proof
 * @told: findings that the agent was told of; of the maintenance work only
 * @refusal: why a donor gave no memory; empty: none did
 */
struct weir_blk_pool {
	char name[WEIR_BLK_POOL_MAX + 1];
	struct weir_blk_layout layout;
	struct weir_members members;
	struct weir_member_copy *copies;
	u16 *group_of;
	bool *equal;
	struct weir_blk_map *map, *fresh;
	u8 agent[WEIR_BLK_AGENT_MAX];
	u32 agent_bytes;
	bool is_over, is_lost, is_unproven;
	u64 told;
	struct kweir_error refusal;
};

/**
 * struct weir_blk_look - what the module has found, for the agent
 * @flags: WEIR_BLK_LOOK_*
 * @proof: regions opened so far; @copied: pages copied
 * @percent: of the data that members lacked
 * @failed, @ready: as WEIR_BLK_FAILED and WEIR_BLK_READY
 * @refusal: as in the pool
 */
struct weir_blk_look {
	u32 flags, percent, nr_failed, nr_ready;
	u64 proof, copied;
	u64 failed[WEIR_BLK_TARGETS_MAX];
	struct weir_blk_ready ready[WEIR_BLK_READY_MAX];
	struct kweir_error refusal;
};

/*
 * Prepares @volume->pool, without donors, for @setup->pool. Context: process; sleeps. Return: 0;
 * -EINVAL, -ENOMEM, with the reason in @error. The caller owes a weir_blk_pool_close() anyway.
 */
int weir_blk_pool_open(struct weir_blk_volume *volume, const struct weir_blk_setup *setup,
		       struct kweir_error *error);
void weir_blk_pool_close(struct weir_blk_volume *volume);

/*
 * Makes a map of what the agent has sent. Context: process; sleeps. Return: 0, and the caller owes
 * a weir_blk_map_free(); -EINVAL, -ENOMEM, with the reason in @error.
 */
int weir_blk_map_new(const struct weir_blk_pool_donor *donors, u32 nr_donors,
		     const struct weir_blk_member *members, u32 nr_members, u32 nr_groups,
		     struct weir_blk_map **map, struct kweir_error *error);
void weir_blk_map_free(struct weir_blk_map *map);

/*
 * Gives a map to the volume. Context: process. Return: NULL, or an older map that nobody has used:
 * the caller frees it.
 */
struct weir_blk_map *weir_blk_pool_set_map(struct weir_blk_volume *volume,
					   struct weir_blk_map *map);

/* Fills in all but WEIR_BLK_LOOK_STARTED. Context: process. */
void weir_blk_pool_look(struct weir_blk_volume *volume, struct weir_blk_look *look);

/* A number that changes when a look would find another flag or failed donor. Context: process. */
u64 weir_blk_pool_findings(struct weir_blk_volume *volume);

/* A donor will not be used, for a reason that a person must mend. Context: process. */
void weir_blk_pool_refused(struct weir_blk_volume *volume, const struct kweir_error *reason);

/* Another client has the volume. Context: process. */
void weir_blk_pool_end(struct weir_blk_volume *volume);

/* Whether the disk may appear. Context: process. */
bool weir_blk_pool_is_equal(struct weir_blk_volume *volume);

/* The maintenance of a volume of a pool. Context: process; sleeps; with @volume->maintenance. */
void weir_blk_pool_maintain(struct weir_blk_volume *volume);

/*
 * Whether an extent may be written now. With the lock held. Return: 0; -EAGAIN wait; -EIO it is
 * lost, or the claim is over.
 */
int weir_blk_pool_may_write(const struct weir_blk_volume *volume, u32 extent);

/*
 * No copy of an extent is left to read. @tried: the copies tried; receives those that are not
 * worth another try; @wrong: those with other data than was written. With the lock held. Return:
 * -EAGAIN wait, and try again; -EIO.
 */
int weir_blk_pool_must_read_again(const struct weir_blk_volume *volume, u32 extent, u8 wrong,
				  u8 *tried);

/* The copies among @failed that stand in the map: the write is not done. With the lock held. */
u8 weir_blk_pool_missed(const struct weir_blk_volume *volume, u32 extent, u8 failed);

#endif
