/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device's memory: core/volume/extents.h over sessions to donors. The core decides; this part
 * holds the memory, the sessions and a maintenance work. The work runs once a second and after
 * events: it detects lost donors, returns unused memory and borrows missing memory. Slow jobs have
 * works of their own: filling new replicas (resync.h), and connecting to lost donors (target.h).
 * Allocations of these works never wait for writeback.
 */
#ifndef WEIR_KERNEL_BLK_VOLUME_H
#define WEIR_KERNEL_BLK_VOLUME_H

#include <linux/blk_types.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/volume/borrow.h"
#include "core/volume/extents.h"
#include "core/volume/stripe.h"
#include "kernel/weir/weir.h"
#include "include/uapi/weir_blk.h"
#include "kernel/blk/page/checksum.h"
#include "kernel/blk/page/seal.h"
#include "wire/control.h"

#define WEIR_BLK_VOLUME_BYTES_MAX (1ull << 44)
#define WEIR_BLK_TARGETS_MAX WEIR_BLK_POOL_DONORS_MAX

struct weir_blk_pool;
struct weir_blk_pool_setup;

/**
 * struct weir_blk_setup - configuration of a volume
 * @donor: @nr_donors addresses
 * @replicas: copies of each piece, at most @nr_donors
 * @name: of a region at the only donor, created if missing; "": without a name
 * @bytes: a multiple of PAGE_SIZE; 0: the size of the region @name
 * @reserve_bytes: how much discarded space keeps its memory; 0: an eighth of the device
 * @key: or NULL
 * @local: path of the block device of last resort; NULL: none. Borrowed for the call
 * @encrypt: the pages; without @name
 * @options: of the sessions
 * @pool: of a volume of a pool, which says where its donors are; NULL: it has donors of its own.
 *	Borrowed for the call
 */
struct weir_blk_setup {
	struct sockaddr_storage donor[WEIR_BLK_DONORS_MAX];
	u32 nr_donors;
	u32 replicas;
	char name[WIRE_CONTROL_NAME_MAX + 1];
	u64 bytes;
	u64 reserve_bytes;
	struct key *key;
	const char *local;
	bool encrypt;
	struct kweir_options options;
	const struct weir_blk_pool_setup *pool;
};

/**
 * struct weir_blk_target - one of its donors
 * @session: NULL: no session now. Changed with @volume->maintenance and @volume->sessions held, and
 *	freed after an RCU grace period
 * @coming: the session being connected; guarded by @volume->sessions
 * @join: the work that connects
 * @past: counters of sessions that have ended
 * @incarnation: of a pool's donor; 0: not in use. Guarded by @volume->lock, as @is_failed
 * @is_failed: the pool's donor does not answer, or has ended
 * @connect_status: errno of the last try to connect
 * @since: when it was last connected, or first seen; jiffies
 */
struct weir_blk_target {
	struct weir_blk_volume *volume;
	struct sockaddr_storage address;
	struct kweir_session *session, *coming;
	struct delayed_work join;
	struct kweir_stat past;
	u64 incarnation;
	bool is_failed;
	int connect_status;
	unsigned long since;
};

/**
 * struct weir_blk_volume - the memory of a device
 * @core: maps extents to donors; guarded by @lock, under which ios are pushed, too
 * @borrow: whom to ask for memory; with @maintenance and @lock held
 * @regions: core.slots regions for each extent; each belongs to the user of its replica
 * @reserve_bytes: as configured
 * @shift: offset >> @shift is the extent, without a pool
 * @pool: of a volume of a pool, or NULL; @stripe: how it is laid over extents
 * @key: kept for later connections
 * @checksum_key, @cipher: constant
 * @sessions: held to change or read the targets' sessions
 * @maintenance: held by a thread that talks to donors about memory: the work, a resize, a connect
 * @closing: no new activity; set with @sessions held
 * @maintain: the maintenance work; @resync_work: fills replicas, queued by @maintain
 * @local: the local disk, or NULL
 * @settled: where @resync_work waits for writes to end
 * @memory_waiters: write requests that wait for memory, or requests that wait for a pool's donor;
 *	guarded by @lock
 * @resume: retries @memory_waiters; separate from @maintain, which waits for donors
 * @failovers: reads retried at another replica
 * @mismatches: reads whose data differed from the written data
 */
struct weir_blk_volume {
	spinlock_t lock;
	struct weir_extents core;
	struct weir_borrow borrow;
	struct weir_extent *extents;
	struct kweir_region *regions;
	u64 bytes, reserve_bytes;
	unsigned int shift;
	struct weir_blk_pool *pool;
	struct weir_stripe stripe;
	char name[WIRE_CONTROL_NAME_MAX + 1];
	struct kweir_options options;
	struct key *key;
	struct weir_blk_checksum_key checksum_key;
	struct weir_blk_cipher cipher;
	struct mutex sessions;
	struct weir_blk_target target[WEIR_BLK_TARGETS_MAX];
	struct mutex maintenance;
	bool closing;
	struct delayed_work maintain;
	struct work_struct resync_work;
	wait_queue_head_t settled;
	struct list_head memory_waiters;
	struct delayed_work resume;
	struct weir_blk_resync *resync;
	struct weir_blk_local *local;
	atomic64_t failovers;
	atomic64_t mismatches;
};

/* Context: process; sleeps. Return: 0, or a negative errno with the reason in @error. */
int weir_blk_volume_open(struct weir_blk_volume *volume, const struct weir_blk_setup *setup,
			 struct kweir_error *error);

/*
 * Resizes a volume without a name to a multiple of PAGE_SIZE. No io beyond the new end is under
 * way.
 *
 * Context: process; sleeps. Return: 0; -ENOSPC, -ENOMEM, with the reason in @error.
 */
int weir_blk_volume_resize(struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error);

/* Closes a volume without ios under way; waits for no donor. Context: process; sleeps. */
void weir_blk_volume_close(struct weir_blk_volume *volume);

/* Wakes the maintenance work. Context: any. */
void weir_blk_volume_kick(struct weir_blk_volume *volume);

/* The same, in a moment. Context: any. */
void weir_blk_volume_kick_soon(struct weir_blk_volume *volume);

/* Memory may have arrived for waiting writes. Context: any. */
void weir_blk_volume_memory_came(struct weir_blk_volume *volume);

/* A write starts to wait for memory. Context: any. */
void weir_blk_volume_wait_for_memory(struct weir_blk_volume *volume);

/**
 * struct weir_blk_facts - state and counters of a volume
 * @donor: @nr_donors entries: the state of each session (LOST without a session), and the bytes of
 *	the volume at the donor; @number: of its target
 */
struct weir_blk_facts {
	struct kweir_stat stat;
	struct weir_extents_census census;
	u64 failovers;
	u64 mismatches;
	u64 bytes_copied, bytes_repaired;
	u64 local_bytes_written, local_bytes_read;
	u32 nr_donors;
	struct {
		struct sockaddr_storage address;
		enum kweir_session_state state;
		u8 number;
		u64 bytes;
	} donor[WEIR_BLK_TARGETS_MAX];
};

/* Context: process; sleeps. */
void weir_blk_volume_facts(struct weir_blk_volume *volume, struct weir_blk_facts *facts);

/*
 * How long a memory request waits for one donor: short enough to try others before a write gives
 * up. No other donor can stand in for that of a pool.
 */
static inline u32 weir_blk_volume_answer_ms(const struct weir_blk_volume *volume)
{
	return volume->pool ? volume->options.timeout_ms : volume->options.timeout_ms / 4;
}

static inline u32 weir_blk_volume_extent(const struct weir_blk_volume *volume, u64 offset)
{
	return offset >> volume->shift;
}

static inline u64 weir_blk_volume_within(const struct weir_blk_volume *volume, u64 offset)
{
	return offset & ((1ull << volume->shift) - 1);
}

/* Where a page of the device lies. */
static inline void weir_blk_volume_find(const struct weir_blk_volume *volume, u64 offset,
					u32 *extent, u32 *page)
{
	if (volume->pool) {
		struct weir_stripe_place place =
			weir_stripe_at(&volume->stripe, offset >> PAGE_SHIFT);

		*extent = place.extent;
		*page = place.page;
		return;
	}
	*extent = weir_blk_volume_extent(volume, offset);
	*page = weir_blk_volume_within(volume, offset) >> PAGE_SHIFT;
}

static inline u64 weir_blk_volume_offset(const struct weir_blk_volume *volume, u32 extent, u32 page)
{
	return ((u64)extent << volume->shift) + ((u64)page << PAGE_SHIFT);
}

/* The number of a page, as its checksum has it: in the device, or, on a pool, in its extents. */
static inline u64 weir_blk_volume_page(const struct weir_blk_volume *volume, u32 extent, u32 page)
{
	return weir_blk_volume_offset(volume, extent, page) >> PAGE_SHIFT;
}

/*
 * Notes the expected pages of a read pushed now. @seal: receives the seals; NULL: not encrypted.
 * With the lock held.
 */
static inline void weir_blk_volume_expect(const struct weir_blk_volume *volume, u32 extent,
					  u32 page, u32 pages, u32 *sums,
					  struct weir_blk_seal *seal)
{
	weir_extents_expect(&volume->core, extent, page, pages, sums);
	if (seal)
		weir_page_seal_expect(&volume->core, extent, page, pages, seal->seals);
}

static inline struct kweir_region *weir_blk_volume_region(struct weir_blk_volume *volume,
							  u32 extent, u8 slot)
{
	return &volume->regions[extent * volume->core.slots + slot];
}

int weir_blk_volumes_init(void);
void weir_blk_volumes_exit(void);

#endif
