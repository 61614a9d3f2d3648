/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A volume of a pool: the pool's map says which donors hold the copies of an extent.
 *
 * An extent belongs to a group, and each serving or syncing member of the group holds a copy, in a
 * named region that outlives the client: see region_name.h.
 *
 * States. A copy is VALID or FILLING while its member stands in the map. The failure of a request
 * changes nothing. A write that fails at a copy is not done: the donor is reported, and the write
 * waits until the map has a version without the member, or succeeds when it is tried again. So
 * each serving member has each completed write, and the next client may read any of them.
 *
 * Opening. The last client may have died during writes, so that serving copies differ in pages
 * whose writes never completed. One serving copy of each extent is chosen, and all others are
 * filled from it. Requests of an extent wait until its copies are equal: then all reads agree.
 * Extents that requests wait for come first. So an opening takes a call for each copy of an extent,
 * and waits for no bytes. If the chosen donor dies meanwhile, another serving copy is chosen: no
 * request has seen the first. A syncing member that the pool may promote without asking this client
 * counts as serving: see weir_pool_map_may_serve(). Requests do not wait for other syncing members.
 *
 * A volume with a code has shards in place of copies: coded.h.
 *
 * Rebuilding. A donor opens a volume that no client has, fills its own syncing members, reports
 * them, and closes the volume. Nothing changes the serving copies meanwhile: each has all completed
 * writes, and any is a source. A client that comes takes the claim over, and fences the donor like
 * an earlier client.
 *
 * Fencing. Each opening has an epoch, the version of its claim in the store. A region is opened at
 * the epoch, and the donor revokes the keys of all holders before. So no write of an earlier client
 * lands after the opening. A donor refuses a client of an earlier epoch.
 *
 * Threads. The watching thread keeps the claim, reads each new map, and tells which members are
 * filled. The maintaining thread applies maps, reports donors, and opens regions.
 */
#ifndef WEIR_LIB_VOLUME_POOL_H
#define WEIR_LIB_VOLUME_POOL_H

#include "core/volume/members.h"
#include "lib/pool/client.h"
#include "lib/volume/volume.h"

/**
 * struct weir_volume_pool - the pool of a mapped volume
 * @client: of the opening and then the watching thread; @reporter: of the maintaining thread
 * @name: the volume's; @pool_id, @volume_id: of its regions' names
 * @epoch, @claimed: versions of the claim's key, at first and now; @lease: of the claim. The
 *	latter two may change, guarded by the lock
 * @kept_ns: when the claim was last kept; of the watching thread
 * @report_ns: no report of a donor before: a store that is full refuses at once; of the maintaining
 *	thread
 * @confirmed_ns: when the claim last stood for certain; guarded by the lock
 * @wants_proof: somebody waits for a newer @confirmed_ns; guarded by the lock
 * @map: in use; the maintaining thread replaces it with the lock held
 * @fresh: newer than @map, if @has_fresh; guarded by the lock
 * @scratch: of the watching thread
 * @members: the copies, by the map and the targets; guarded by the lock. Of a code, memory that a
 *	shard found is cleared, unless the shard counts
 * @group, @copies, @equal, @groups: what @members points to
 * @ready: the syncing member, by @joined, that has all data; by group and shard; guarded by the
 *	lock
 * @reported: the part of @ready that the pool knows; of the watching thread
 * @is_open: each extent has a source, so requests may come; @is_rebuilt: the pool knows that the
 *	own members have all data; guarded by the lock
 * @changed: a futex: either has changed, or @members, @refusal or the map; atomic
 * @shown, @shown_ns: progress as the pool shows it; of the watching thread
 * @proof_moves: regions opened when the map was read again last, and @is_proven: it was the same
 *	map; of the maintaining thread
 * @refusal, @reason: why a donor gave no memory last; guarded by the lock
 */
struct weir_volume_pool {
	struct weir_pool_client *client, *reporter;
	char name[WEIR_POOL_NAME_MAX];
	uint64_t pool_id, volume_id, epoch, lease, claimed, kept_ns, report_ns, confirmed_ns;
	bool wants_proof;
	struct weir_pool_map *map, *fresh, *scratch;
	bool has_fresh;
	struct weir_members members;
	uint16_t *group;
	struct weir_member_copy *copies;
	bool *equal;
	struct weir_member_group *groups;
	uint64_t ready[WEIR_POOL_GROUPS_MAX][WEIR_POOL_WIDTH_MAX];
	uint64_t reported[WEIR_POOL_GROUPS_MAX][WEIR_POOL_WIDTH_MAX];
	bool is_open, is_rebuilt;
	uint32_t changed;
	unsigned int shown;
	uint64_t shown_ns;
	uint64_t proof_moves;
	bool is_proven;
	int refusal;
	struct weir_error reason;
	pthread_t watcher;
	bool has_watcher;
};

/*
 * How a volume with copies is laid over extents. The same at each opening: it depends on the volume
 * and the size of the table only. The kernel's block device has the same.
 */
void weir_volume_pool_stripe(const struct weir_pool_map *map, const struct weir_pool_volume *volume,
			     struct weir_stripe *stripe);

/* Claims the volume, and prepares its donors. Return: 0, or an errno with the reason in @error. */
int weir_volume_pool_open(struct weir_volume *v, struct weir_error *error);

/* Waits until requests may come. Return: 0, or an errno with the reason in @error. */
int weir_volume_pool_wait_open(struct weir_volume *v, struct weir_error *error);

/* The lease of the claim, and the version of its key, as they are now. */
void weir_volume_pool_claim(struct weir_volume *v, uint64_t *lease, uint64_t *claimed);

/* Frees all. The claim is over. */
void weir_volume_pool_close(struct weir_volume *v);

/* Starts the watching thread; ends the claim and the thread. */
int weir_volume_pool_watch(struct weir_volume *v, struct weir_error *error);
void weir_volume_pool_stop(struct weir_volume *v);

/* No request can succeed any more. */
void weir_volume_pool_end(struct weir_volume *v, int status);

/* Takes the members of a group that are not out, in order, without the numbers of their donors. */
void weir_volume_pool_read_group(const struct weir_volume *v, const struct weir_pool_map *map,
				 uint16_t number, struct weir_member_group *group);

/* As @is_equal of struct weir_volume_layout. */
bool weir_volume_pool_is_equal(struct weir_volume *v, uint32_t extent);

/* Return: percent of their data that syncing members have. Takes the lock. */
unsigned int weir_volume_pool_progress(struct weir_volume *v);

/* Brings the copies in line with the map. Context: the maintaining thread. */
void weir_volume_pool_place(struct weir_volume *v);

/* Forgets a target's region handles, whose session ends. Context: the maintaining thread. */
void weir_volume_pool_detach(struct weir_volume *v, uint8_t target);

#endif
