/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Brings the copies of a mapped volume in line with a pool's map: copies of members that are out
 * leave, members without a copy get one, and the first copies to be trusted are chosen. The shards
 * of a code follow the map in the same way; coded.h finds the stripes in them.
 *
 * A copy belongs to a membership: a donor that leaves a group and returns has joined it later, and
 * does not find its old bytes.
 *
 * Opening. The last client may have died during writes, so that serving copies differ in pages
 * whose writes never completed. weir_members_open() chooses one serving copy of each extent, and
 * all others are filled from it. The host lets requests come when all copies that another client
 * may read are equal. If the chosen donor dies before, another serving copy is chosen: no request
 * has seen the first.
 *
 * An extent whose serving members had no memory has no data, if the volume was blank. Otherwise
 * the host must prove that the map is still the latest after the regions were opened: a donor that
 * is no member any more takes its memory back.
 *
 * Rebuilding. A donor that fills its own members opens a volume too, and writes nothing else. It
 * needs the serving members as sources, and waits for its own members only. Extents without such a
 * member are none of its business. Nothing changes the serving copies meanwhile, so that each is
 * as good as another. Of a code it needs all shards that count, to know the stripes.
 *
 * Context of all: any; never sleeps; serialised together with the extents.
 */
#ifndef WEIR_CORE_VOLUME_MEMBERS_H
#define WEIR_CORE_VOLUME_MEMBERS_H

#include "core/base/platform.h"
#include "core/volume/extents.h"

#define WEIR_MEMBERS_MAX 16u /* of a group, while members are replaced */
#define WEIR_MEMBERS_NO_DONOR 255u

/* The name of a copy's region: ids of pool and volume, the extent, and the member's @joined. */
#define WEIR_MEMBERS_REGION_NAME "p%llx.%llx.%x.%llx"

/**
 * struct weir_member - a member of a group that is not out
 * @joined: the version of the group that made it a member
 * @donor: number of the volume's donor, or WEIR_MEMBERS_NO_DONOR: not known yet
 * @shard: the part of a code that it has
 * @serves: it has each completed write; otherwise it lacks some earlier data
 * @counts: it serves, or the pool may let it serve without a further report of this client
 * @is_own: this client is the member's donor
 */
struct weir_member {
	uint64_t joined;
	uint8_t donor, shard;
	bool serves, counts, is_own;
};

struct weir_member_group {
	uint8_t nr;
	struct weir_member member[WEIR_MEMBERS_MAX];
};

/**
 * struct weir_member_copy - what is known of a copy, beside its struct weir_replica
 * @joined: of its member
 * @is_attached: the host has its region, so that requests can use it
 * @was_there: its memory existed before this client came
 */
struct weir_member_copy {
	uint64_t joined;
	bool is_attached, was_there;
};

/**
 * struct weir_members - the copies of a volume
 * @extents: the volume, which is_mapped
 * @copy: *kept*; @extents->slots of each extent; zeroed at first
 * @group: of the map; the host replaces it
 * @group_of: *kept*; of each extent, an index of @group
 * @equal: *kept*; whether the copies of each extent have been equal; zeroed at first
 * @nr_equal: how many are
 * @moves: regions attached so far
 * @is_blank: the volume had no data when it was opened
 * @data: shards of a code that are enough for all data; 0 or 1: the volume has copies
 * @is_rebuild: the client is a donor that fills its own members
 */
struct weir_members {
	struct weir_extents *extents;
	struct weir_member_copy *copy;
	const struct weir_member_group *group;
	const uint16_t *group_of;
	bool *equal;
	uint32_t nr_equal;
	uint64_t moves;
	uint8_t data;
	bool is_blank, is_rebuild;
};

/* Whether this client fills members of a group, or serves requests there: see Rebuilding. */
bool weir_members_are_wanted(const struct weir_members *m, const struct weir_member_group *group);

/* Return: what is known of a copy. */
static inline struct weir_member_copy *weir_members_copy(const struct weir_members *m,
							 uint32_t extent, uint8_t slot)
{
	return &m->copy[(size_t)extent * m->extents->slots + slot];
}

/* Return: the member that a copy belongs to, or NULL: its member is out, or there is no copy. */
const struct weir_member *weir_members_at(const struct weir_members *m, uint32_t extent,
					  uint8_t slot);

/* Return: the slot of a member's copy; slots, if it has none. */
uint8_t weir_members_slot(const struct weir_members *m, uint32_t extent,
			  const struct weir_member *member);

/* Copies of an extent whose member is out become STALE. */
void weir_members_leave(struct weir_members *m, uint32_t extent);

/**
 * weir_members_next() - find a member of an extent whose copy is not attached
 * @m: the copies
 * @extent: number of the extent
 * @donors: a bit for each donor that can be asked
 * @tried: members already tried, a bit for each; receives one more
 * @place: receives the place of its copy
 * @member: receives the member; @joined of it names the region
 * @is_new: receives whether the member has no copy yet, so that its region may have to be created
 *
 * The host opens the region and owes a weir_members_attach(), if that succeeds.
 *
 * Return: true if there is one.
 */
bool weir_members_next(const struct weir_members *m, uint32_t extent, uint64_t donors,
		       uint16_t *tried, struct weir_extents_placement *place,
		       struct weir_member *member, bool *is_new);

/* The region of a copy is open. @was_there: and existed before, for a copy that is_new. */
void weir_members_attach(struct weir_members *m, const struct weir_extents_placement *place,
			 const struct weir_member *member, bool is_new, bool was_there);

/* The session to a donor has ended, and with it the regions. The copies stay what they are. */
void weir_members_detach(struct weir_members *m, uint8_t donor);

/* Whether a copy of this donor is in use by a request or a resync. */
bool weir_members_are_used(const struct weir_members *m, uint8_t donor);

/**
 * weir_members_open() - choose the source of an extent of copies that are not equal yet
 * @m: the copies
 * @extent: number of the extent
 * @is_proven: the map was still the latest after the regions were opened
 *
 * Return: 0 it has a source; -EAGAIN some region is not attached, or a copy is in use; -EIO too few
 *	members are left that serve; -ENODATA it has no data, which needs a proof.
 */
int weir_members_open(struct weir_members *m, uint32_t extent, bool is_proven);

/**
 * weir_members_open_coded() - find the shards that tell the stripes of an extent
 * @m: the shards
 * @extent: number of the extent
 * @is_proven: as above
 * @counting: receives a bit for each shard that counts
 * @found: receives a bit for those whose memory was there
 *
 * Return: 0 it has a source, and @counting is 0, or the host owes a weir_coded_recover() and trusts
 *	shards; or as above.
 */
int weir_members_open_coded(const struct weir_members *m, uint32_t extent, bool is_proven,
			    uint16_t *counting, uint16_t *found);

/* New members of an extent of copies that has been open and has no data are whole. */
void weir_members_trust_new(struct weir_members *m, uint32_t extent);

/* Whether the copies of an extent that another client may read are equal, or have been. */
bool weir_members_are_equal(struct weir_members *m, uint32_t extent);

/* Whether a member has all data of each extent of its group, whose index is @group. */
bool weir_members_is_ready(const struct weir_members *m, uint16_t group,
			   const struct weir_member *member);

/*
 * Whether a write must wait: the copy of a member that stands in the map is VALID and not
 * attached. Such a write would not be done before its donor is back, or out.
 */
bool weir_members_must_wait(const struct weir_members *m, uint32_t extent);

/**
 * weir_members_progress() - how far the members that lack data are, for people
 * @m: the copies
 * @filled: returns how many of its pages a shard of a code has; not used for copies, else NULL
 * @arg: passed to @filled
 * @done: receives the pages that they have
 * @all: receives the pages that they will have
 */
void weir_members_progress(const struct weir_members *m,
			   uint64_t (*filled)(const void *arg, uint32_t extent, uint8_t slot),
			   const void *arg, uint64_t *done, uint64_t *all);

#endif
