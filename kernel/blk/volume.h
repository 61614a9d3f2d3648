/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device's memory: core/volume/volume.h over sessions to donors. What decides is there; here are the
 * memory, the sessions, and one work item that looks after them, once a second or when something
 * happened: it sees which donors are gone, gives back what nobody needs, and asks for what is
 * missing. What may take long has works of its own: to fill what is new (fill.h), and to connect to
 * donors that are gone (target.h). What they allocate may not wait for writing out.
 */
#ifndef WEIR_KERNEL_BLK_VOLUME_H
#define WEIR_KERNEL_BLK_VOLUME_H

#include <linux/blk_types.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/volume/volume.h"
#include "kernel/weir/weir.h"
#include "include/uapi/weir_blk.h"
#include "wire/control.h"

#define WEIR_BLK_VOLUME_BYTES_MAX (1ull << 44)

/**
 * struct weir_blk_setup - what is wanted
 * @donor: their addresses, @nr_donors of them
 * @replicas: of each piece, at most @nr_donors
 * @name: of a region at the one donor, which is made if it is not there; "": without a name
 * @bytes: a multiple of PAGE_SIZE; 0: as large as the region @name is
 * @reserve_bytes: of what was discarded, that keep their memory; 0: an eighth of the device
 * @key: or NULL
 * @local: path of the block device that is the last resort; NULL: none. Needed during the call only
 * @options: of the sessions
 */
struct weir_blk_setup {
	struct sockaddr_storage donor[WEIR_VOLUME_DONORS_MAX];
	u32 nr_donors;
	u32 replicas;
	char name[WIRE_CONTROL_NAME_MAX + 1];
	u64 bytes;
	u64 reserve_bytes;
	struct key *key;
	const char *local;
	struct kweir_options options;
};

/**
 * struct weir_blk_target - one of its donors
 * @session: NULL: there is none now; changed with @volume->maintenance and @volume->sessions, and not
 *	freed while somebody looks under RCU
 * @coming: that is being connected; guarded by @volume->sessions
 * @join: connects, where there is none
 * @is_silent: it has not answered when it was asked about memory, and is asked again only at
 *	@ask_again, jiffies; guarded by @volume->maintenance
 * @past: what sessions that have ended had done
 */
struct weir_blk_target {
	struct weir_blk_volume *volume;
	struct sockaddr_storage address;
	struct kweir_session *session, *coming;
	struct delayed_work join;
	bool is_silent;
	unsigned long ask_again;
	struct kweir_stat past;
};

/**
 * struct weir_blk_volume - the memory of a device
 * @core: who has what; guarded by @lock, with which ios are pushed, too
 * @regions: of each extent core.slots; each belongs to who uses its replica
 * @reserve_bytes: as it was asked for
 * @shift: an offset shifted by it is an extent
 * @key: kept, to prove it again
 * @sessions: held by who changes or looks at the members' sessions
 * @maintenance: held by who talks to the donors about memory: the work, who resizes, or has connected
 * @closing: nothing is begun any more; set with @sessions
 * @maintain: the work; @resync_work: that fills, which it begins
 * @local: the local disk; NULL: there is none
 * @settled: where @resync_work waits for writes to end
 * @memory_waiters: commands, of writes that wait for memory; guarded by @lock
 * @resume: looks at them; not @maintain, which waits for donors
 * @failovers: reads that another replica was asked for
 * @mismatches: reads that found something else than what was written
 */
struct weir_blk_volume {
	spinlock_t lock;
	struct weir_volume core;
	struct weir_volume_extent *extents;
	struct kweir_region *regions;
	u64 bytes, reserve_bytes;
	unsigned int shift;
	char name[WIRE_CONTROL_NAME_MAX + 1];
	struct kweir_options options;
	struct key *key;
	struct mutex sessions;
	struct weir_blk_target target[WEIR_VOLUME_DONORS_MAX];
	struct mutex maintenance;
	bool closing;
	struct delayed_work maintain;
	struct work_struct resync_work;
	wait_queue_head_t settled;
	struct list_head memory_waiters;
	struct delayed_work resume;
	struct weir_blk_resync *fill;
	struct weir_blk_local *local;
	atomic64_t failovers;
	atomic64_t mismatches;
};

/* Context: process; sleeps. Return: 0, or a negative errno with the reason in @error. */
int weir_blk_volume_open(struct weir_blk_volume *volume, const struct weir_blk_setup *setup,
			 struct kweir_error *error);

/*
 * Another size, a multiple of PAGE_SIZE; of one without a name. Nothing beyond the end is under
 * way.
 *
 * Context: process; sleeps. Return: 0; -ENOSPC, -ENOMEM, with the reason in @error.
 */
int weir_blk_volume_resize(struct weir_blk_volume *volume, u64 bytes, struct kweir_error *error);

/* None of its ios is under way. No donor is waited for. Context: process; sleeps. */
void weir_blk_volume_close(struct weir_blk_volume *volume);

/* Something happened that the work should look at. Context: any. */
void weir_blk_volume_kick(struct weir_blk_volume *volume);

/* There may be memory for who waits for it. Context: any. */
void weir_blk_volume_memory_came(struct weir_blk_volume *volume);

/* Somebody waits from now on. Context: any. */
void weir_blk_volume_wait_for_memory(struct weir_blk_volume *volume);

/**
 * struct weir_blk_facts - how a volume is, and what it has done
 * @donor: its members, @nr_donors of them: the state of each session, LOST where there is none, and
 *	the bytes that it has of the volume
 */
struct weir_blk_facts {
	struct kweir_stat stat;
	struct weir_volume_census census;
	u64 failovers;
	u64 mismatches;
	u64 bytes_copied;
	u64 local_bytes_written, local_bytes_read;
	u32 nr_donors;
	struct {
		struct sockaddr_storage address;
		enum kweir_session_state state;
		u64 bytes;
	} donor[WEIR_VOLUME_DONORS_MAX];
};

/* Context: process; sleeps. */
void weir_blk_volume_facts(struct weir_blk_volume *volume, struct weir_blk_facts *facts);

/*
 * How long a donor is waited for that is asked about memory: so others can be before a write gives
 * up.
 */
static inline u32 weir_blk_volume_patience_ms(const struct weir_blk_volume *volume)
{
	return volume->options.timeout_ms / 4;
}

static inline u32 weir_blk_volume_extent(const struct weir_blk_volume *volume, u64 offset)
{
	return offset >> volume->shift;
}

static inline u64 weir_blk_volume_within(const struct weir_blk_volume *volume, u64 offset)
{
	return offset & ((1ull << volume->shift) - 1);
}

static inline u64 weir_blk_volume_offset(const struct weir_blk_volume *volume, u32 extent, u32 page)
{
	return ((u64)extent << volume->shift) + ((u64)page << PAGE_SHIFT);
}

static inline struct kweir_region *weir_blk_volume_region(struct weir_blk_volume *volume,
							  u32 extent, u8 slot)
{
	return &volume->regions[extent * volume->core.slots + slot];
}

int weir_blk_volumes_init(void);
void weir_blk_volumes_exit(void);

#endif
