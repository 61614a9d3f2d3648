/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A volume: a linear space of extents, each kept at several donors, and who may be believed.
 *
 *	NONE ---- granted ----> FILLING ---- all is copied ----> VALID
 *	  ^  (an extent that holds nothing: VALID at once)        |
 *	  +---- released <--- STALE <-- missed a write, or its donor is gone
 *
 * What is read comes from a VALID replica, which has every write that was ever said to be done.
 * A write goes to all that are VALID or FILLING. It is done when one that is VALID has it; those
 * that have missed it are STALE before anybody hears that it is done, and are never read again.
 * When none that is VALID has it, it failed, and nobody knows what of it is there: one replica stays
 * VALID and alone decides, so that two reads never differ. An extent that holds something and has no
 * VALID replica is lost, and stays so: what comes anew would be zeroes, and not what was written.
 *
 * How a replica is filled while all goes on. It is copied chunk by chunk. A window opens over a chunk
 * before it is read, and closes when it has been written. A write that begins in the window has
 * overtaken the copy, which leaves its pages out. The chunk is read only when the writes from before
 * the window have ended: the source is VALID in spite of them. And the last that overtook end before
 * the replica is called VALID: it has what they wrote.
 *
 * What a page should be. The volume remembers a checksum of each page as it was last written, and the
 * writes and reads of a page have one order everywhere: that in which the host pushes them. So who
 * reads takes along what the pages should be by then, and compares. What differs was changed behind
 * the volume's back, and another replica is asked. A page that was never written, or discarded, is
 * zeroes by definition, and no donor is asked for it; it stays so if its first write fails. A page whose
 * later write failed may be anything.
 *
 * Memory comes and goes by extents. One of which all was discarded is thin: it wants no memory, and gives
 * back what it has, but for a reserve. What is written to an extent that has none takes the memory of an
 * idle one, at once; the reserve is filled up later.
 *
 * A donor may want memory back: it says how many extents it keeps, and the replicas beyond that are to
 * leave. They are believed, read and written as before, while others in their place are filled elsewhere:
 * for that an extent has one slot more than replicas. Only when it has more VALID replicas than it
 * should, one that is to leave is STALE. So what nobody else has room for stays where it is.
 *
 * A local disk, where the host has one, is the last resort. What was written is copied there later, from a
 * replica that is VALID; for each page a bit says that the disk has it as it was last written, and goes
 * when the page changes. Where no replica can be read, the disk is, for pages that it has. An extent of which
 * it has all is not lost: when a donor gives memory it is filled from there. Until then nothing is
 * written to it, so that nothing overtakes that copy.
 *
 * The host owns memory, requests and time, and asks donors for what weir_volume_next_placement() wants.
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_VOLUME_VOLUME_H
#define WEIR_CORE_VOLUME_VOLUME_H

#include "core/base/platform.h"

#define WEIR_VOLUME_DONORS_MAX 8u
#define WEIR_VOLUME_REPLICAS_MAX 4u
#define WEIR_VOLUME_SLOTS_MAX (WEIR_VOLUME_REPLICAS_MAX + 1)
#define WEIR_VOLUME_KEEPS_ALL UINT64_MAX
#define WEIR_VOLUME_CHUNK_PAGES 64u /* that a copy moves at a time */

/* What a page should be; all other even values are the host's checksums. */
#define WEIR_SUM_NOTHING 0u /* zeroes: never written, or discarded */
#define WEIR_SUM_UNKNOWN 1u /* its last write failed, or was not seen */
#define WEIR_SUM_FRESH 1u /* with a checksum: NOTHING before, should this write fail */

enum weir_volume_replica_state {
	WEIR_REPLICA_NONE, /* no memory */
	WEIR_REPLICA_FILLING, /* has what was written since it is there, and not all from before */
	WEIR_REPLICA_VALID, /* has all */
	WEIR_REPLICA_STALE, /* its memory is to be given back once nobody uses it */
};

enum weir_volume_donor_state {
	WEIR_VOLUME_DONOR_DOWN, /* gives no memory, and has none of ours */
	WEIR_VOLUME_DONOR_SLOW, /* may come back with what it has; others are asked first */
	WEIR_VOLUME_DONOR_UP,
};

/**
 * struct weir_volume_replica - one copy of an extent
 * @donor: where, unless it is NONE
 * @state: an enum weir_volume_replica_state
 * @leaves: its donor wants the memory back
 * @users: reads, writes and copies under way there
 */
struct weir_volume_replica {
	uint8_t donor;
	uint8_t state;
	bool leaves;
	uint32_t users;
};

/**
 * struct weir_volume_extent - a piece of the volume
 * @replica: the first volume->slots
 * @sum: *kept*; of each of its pages, what it should be; NOTHING at first
 * @local: *kept*; a bit for each page, which the local disk has; zeroed at first. NULL: there is no disk
 * @nr_local: how many
 * @live: pages that are not NOTHING: something was written, whether it came about or not
 * @thin: all of it was discarded, and nothing written since
 * @phase: 0 or 1; flips when a window of a copy opens
 * @writes: under way, by the phase in which they began
 */
struct weir_volume_extent {
	struct weir_volume_replica replica[WEIR_VOLUME_SLOTS_MAX];
	uint32_t *sum;
	uint64_t *local;
	uint32_t nr_local;
	uint32_t live;
	bool thin;
	uint8_t phase;
	uint32_t writes[2];
};

/**
 * struct weir_volume_donor - what the volume knows of a donor
 * @state: an enum weir_volume_donor_state
 * @free: extents that it may have room for; the host says
 * @keep: extents that it wants to have at most
 */
struct weir_volume_donor {
	uint8_t state;
	uint64_t free;
	uint64_t keep;
};

enum weir_volume_resync_state {
	WEIR_RESYNC_IDLE,
	WEIR_RESYNC_DRAINING, /* the window is open; waits for writes of the other phase */
	WEIR_RESYNC_READING,
	WEIR_RESYNC_WRITING,
};

/**
 * struct weir_volume_resync - the one copy that is under way
 * @state: an enum weir_volume_resync_state
 * @source, @target: replicas of @extent; @source is volume->slots: the local disk
 * @page: of the extent, where the chunk begins
 * @pages: in the chunk
 * @taken: pages of the chunk that have been written, or left out
 * @overtaken: a bit for each page of the chunk
 */
struct weir_volume_resync {
	uint8_t state;
	uint8_t source, target;
	uint32_t extent;
	uint32_t page, pages, taken;
	uint64_t overtaken;
};

/**
 * struct weir_volume_local_copy - what is copied to the local disk
 * @is_busy: pages are on their way
 * @extent, @page: the first of them, or where to look for the next
 * @pages: how many
 * @overtaken: a bit for each, that has changed since it was read
 * @passed: extents looked through since something was found
 */
struct weir_volume_local_copy {
	bool is_busy;
	uint32_t extent;
	uint32_t page, pages;
	uint64_t overtaken;
	uint32_t passed;
};

/**
 * struct weir_volume - the volume
 * @extent: @nr_extents of them, of @pages pages each
 * @replicas: that each extent should have
 * @slots: that it has for them: one more, if there is a donor more
 * @reserve: thin extents that keep their memory
 * @copied: pages that were copied so far
 */
struct weir_volume {
	struct weir_volume_donor donor[WEIR_VOLUME_DONORS_MAX];
	struct weir_volume_extent *extent;
	uint32_t nr_extents;
	uint32_t pages;
	uint8_t nr_donors;
	uint8_t replicas;
	uint8_t slots;
	uint32_t reserve;
	struct weir_volume_resync copy;
	uint64_t copied;
	struct weir_volume_local_copy local;
};

/**
 * weir_volume_init() - a volume without memory, whose donors are away
 * @extents: *kept*; zeroed, but for each one's @sum
 * @nr_extents: at least 1
 * @pages: of an extent, at least 1
 * @nr_donors: 1 to WEIR_VOLUME_DONORS_MAX
 * @replicas: 1 to WEIR_VOLUME_REPLICAS_MAX, and at most @nr_donors
 *
 * Its @reserve is 0 until the host sets it.
 *
 * Return: 0; -EINVAL one of them is out of its range.
 */
int weir_volume_init(struct weir_volume *v, struct weir_volume_extent *extents, uint32_t nr_extents,
		     uint32_t pages, uint8_t nr_donors, uint8_t replicas);

/**
 * weir_volume_grow() - more extents
 * @extents: *kept*, in place of those that there were, and beginning with them as they are now
 * @nr_extents: at least as many as there were
 */
void weir_volume_grow(struct weir_volume *v, struct weir_volume_extent *extents,
		      uint32_t nr_extents);

/* A donor is there. */
void weir_volume_donor_up(struct weir_volume *v, uint8_t donor);

/* It has room for so many extents more, as far as is known; 0: it lends no more, for now. */
void weir_volume_donor_room(struct weir_volume *v, uint8_t donor, uint64_t extents);

/* It may be up again soon, with what it has. */
void weir_volume_donor_slow(struct weir_volume *v, uint8_t donor);

/* It is gone, and what it had: its replicas are STALE. */
void weir_volume_donor_lost(struct weir_volume *v, uint8_t donor);

/*
 * It wants to have so many extents at most; KEEPS_ALL: as many as it has. Those that hold
 * nothing leave first. To be said again whenever the host looks, since what extents hold changes.
 */
void weir_volume_donor_keeps(struct weir_volume *v, uint8_t donor, uint64_t extents);

/* Return: how many extents have a replica there, whatever its state. */
uint32_t weir_volume_donor_extents(const struct weir_volume *v, uint8_t donor);

/* One replica of one extent, at a donor. */
struct weir_volume_placement {
	uint32_t extent;
	uint8_t slot;
	uint8_t donor;
};

/**
 * weir_volume_next_placement() - which memory is missing, and who should give it
 *
 * Of the donors that are up and have none of the extent, the one with the most room. Whoever gives it
 * owes a weir_volume_granted(), or says that it has no room.
 *
 * Return: 0; -ENOENT nothing is missing but what is lost, or for what is to leave; -ENOSPC no donor
 *	can give it.
 */
int weir_volume_next_placement(const struct weir_volume *v, struct weir_volume_placement *place);

/**
 * weir_volume_granted() - @place->donor has given memory, full of zeroes
 * @place: what it was asked for, and receives where the memory is wanted by now
 *
 * Return: 0; -ENOENT nowhere, any more: give it back.
 */
int weir_volume_granted(struct weir_volume *v, struct weir_volume_placement *place);

/**
 * weir_volume_adopt() - memory that is there, with what it holds: the one replica of the one extent
 * @sum: *kept*; for @pages pages, all of which are UNKNOWN
 */
void weir_volume_adopt(struct weir_volume *v, uint32_t *sum, uint32_t pages);

/*
 * Thin extents beyond the reserve need their memory no more, if nobody uses it and no donor of it is slow;
 * nor does a replica that is to leave, once there are enough others; nor what is filled from nobody.
 */
void weir_volume_trim(struct weir_volume *v);

/**
 * weir_volume_next_return() - whose memory nobody needs any more
 * @donors: a bit for each donor that can be told, or needs not be
 * @place: receives where; owes a weir_volume_returned()
 *
 * Return: whether there is any.
 */
bool weir_volume_next_return(struct weir_volume *v, uint8_t donors,
			     struct weir_volume_placement *place);

/* @is_told: the donor has it back. Else it is the donor's memory and nobody's, and to be told again. */
void weir_volume_returned(struct weir_volume *v, const struct weir_volume_placement *place,
			  bool is_told);

/* Both, of any donor. Return: true: the memory at @place is the volume's no more: give it back. */
bool weir_volume_reclaim(struct weir_volume *v, struct weir_volume_placement *place);

/**
 * weir_volume_provide() - memory for what will be written
 * @extent: where
 * @from: receives @extent, which has memory; or another one, with which it has changed memory, slot by
 *	slot: the host does the same before it gives its lock back
 *
 * Return: 0; -EAGAIN: once donors have been asked, or one that is slow answers, or what the local disk has
 *	is there again; -ENOSPC no donor has any; -EIO it is lost.
 */
int weir_volume_provide(struct weir_volume *v, uint32_t extent, uint32_t *from);

/**
 * weir_volume_discard() - pages are zeroes from now on
 * @keep: the extent is to have memory nevertheless
 */
void weir_volume_discard(struct weir_volume *v, uint32_t extent, uint32_t page, uint32_t pages,
			 bool keep);

/* Whether all these pages are NOTHING: no donor needs to be asked for them. */
bool weir_volume_is_blank(const struct weir_volume *v, uint32_t extent, uint32_t page,
			  uint32_t pages);

/**
 * weir_volume_read() - where to read
 * @extent: of it
 * @tried: a bit for each replica that was tried
 * @slot: receives which one; then owes a weir_volume_read_end()
 *
 * Return: 0; -EIO no other has it.
 */
int weir_volume_read(struct weir_volume *v, uint32_t extent, uint8_t tried, uint8_t *slot);
void weir_volume_read_end(struct weir_volume *v, uint32_t extent, uint8_t slot);

/**
 * weir_volume_expect() - what pages should be, for a read that is pushed now
 * @sums: receives them, @pages of them; what is NOTHING there the host makes zeroes
 */
void weir_volume_expect(const struct weir_volume *v, uint32_t extent, uint32_t page, uint32_t pages,
			uint32_t *sums);

/* A replica has what was never written: it is STALE, unless it is the last one. Return: whether it is. */
bool weir_volume_distrust(struct weir_volume *v, uint32_t extent, uint8_t slot);

/* A bit for each replica that a write would go to; 0: the extent has none that is VALID. */
uint8_t weir_volume_writable(const struct weir_volume *v, uint32_t extent);

/**
 * struct weir_volume_write - a write under way
 * @extent: where
 * @phase: of the extent, when it began
 * @slots: a bit for each replica that it goes to, as weir_volume_writable() said
 * @page, @pages: of the extent
 * @sums: of the pages; *kept until it has ended*
 */
struct weir_volume_write {
	uint32_t extent;
	uint32_t page, pages;
	const uint32_t *sums;
	uint8_t phase;
	uint8_t slots;
};

/**
 * weir_volume_write() - where to write
 * @w: receives it
 * @extent: of it; @page, @pages: of that, within it
 * @sums: their checksums, even and not 0; *kept until it has ended*
 *
 * The host pushes the write to all of @w->slots before it gives its lock back, and owes a
 * weir_volume_write_end() when all of them have ended.
 *
 * Return: 0; -EIO the extent has no VALID replica.
 */
int weir_volume_write(struct weir_volume *v, struct weir_volume_write *w, uint32_t extent,
		      uint32_t page, uint32_t pages, const uint32_t *sums);

/**
 * weir_volume_write_end() - it has ended at all its replicas
 * @failed: a bit for each of which it is not certain that it has it
 *
 * Return: 0; -EIO it failed: old and new may both be there, but all reads agree.
 */
int weir_volume_write_end(struct weir_volume *v, const struct weir_volume_write *w, uint8_t failed);

enum weir_volume_copy_op {
	WEIR_VOLUME_COPY_NOTHING, /* no replica is to be filled */
	WEIR_VOLUME_COPY_WAIT, /* until a write of this volume has ended: then ask again */
	WEIR_VOLUME_COPY_READ, /* from @slot */
	WEIR_VOLUME_COPY_WRITE, /* to @slot, pushed before the host gives its lock back */
	WEIR_VOLUME_COPY_READ_LOCAL, /* from the local disk */
};

/**
 * struct weir_volume_copy_step - what to do next
 * @what: an enum weir_volume_copy_op
 * @extent, @slot: where
 * @page, @pages: of the extent
 * @offset: of these pages in what was read, pages
 */
struct weir_volume_copy_step {
	uint8_t what;
	uint8_t slot;
	uint32_t extent;
	uint32_t page, pages, offset;
};

/* Reads and writes owe a weir_volume_resync_done(), before the next is asked for. */
void weir_volume_resync_next(struct weir_volume *v, struct weir_volume_copy_step *step);
void weir_volume_resync_done(struct weir_volume *v, bool succeeded);

/* Whether the local disk has all these pages, or they are NOTHING. */
bool weir_volume_local_has(const struct weir_volume *v, uint32_t extent, uint32_t page,
			   uint32_t pages);

/* Whether the extent holds something, and the local disk has all of it. */
bool weir_volume_is_local(const struct weir_volume *v, uint32_t extent);

/**
 * weir_volume_local_next() - which pages the local disk should have next
 * @step: receives READ: of these pages, at this replica, pushed before the host gives its lock back; owes a
 *	weir_volume_read_end() and then, when the disk has them, a weir_volume_local_done(). WAIT: ask
 *	again, it has looked for long enough. NOTHING: it has all that it can, until something is written
 */
void weir_volume_local_next(struct weir_volume *v, struct weir_volume_copy_step *step);

/* @succeeded: the disk has what was read, and that was what it should be. */
void weir_volume_local_done(struct weir_volume *v, bool succeeded);

/* A page has changed. Of the core's own. */
void weir_volume_local_forget(struct weir_volume *v, uint32_t extent, uint32_t page);

/* How many of its replicas are VALID. */
uint8_t weir_volume_count_valid(const struct weir_volume *v, uint32_t extent);

/* Whether an extent has lost what it held: no replica is VALID, nor has the local disk all of it. */
bool weir_volume_is_lost(const struct weir_volume *v, uint32_t extent);

/**
 * struct weir_volume_census - how the extents are
 * @whole: those that have all their replicas; @lean: fewer, but one; @bare: none
 * @local: none, but the local disk has all of it; not among the @bare ones
 * @behind: pages that the local disk should have, and has not, or that may be anything
 * @lost: of the @bare ones, those that held something; @thin: those that want none
 * @leaving: those with a replica that is to leave
 */
struct weir_volume_census {
	uint32_t whole, lean, bare, local, lost, thin, leaving;
	uint64_t behind;
};

struct weir_volume_census weir_volume_census(const struct weir_volume *v);

#endif
