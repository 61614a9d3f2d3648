/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A volume: a linear space of extents, each replicated on several donors. The volume knows which
 * replicas are valid.
 *
 *	NONE ---- granted ----> FILLING ---- all pages copied ----> VALID
 *	  ^  (an empty extent: VALID at once)                        |
 *	  +---- released <--- STALE <-- missed a write, or its donor is gone
 *
 * Reads and writes. A read goes to a VALID replica, which has every completed write. A write goes
 * to all VALID and FILLING replicas, and succeeds if a VALID replica has the data. Replicas that
 * missed the write become STALE before the write is reported done, and are never read again. If no
 * VALID replica has the data, the write fails, outcome unknown. A single replica then stays VALID,
 * so that two reads never differ. A non-empty extent without a VALID replica is lost for good: new
 * memory would hold zeroes.
 *
 * Filling a replica during reads and writes. The data is copied chunk by chunk. A window is open
 * over a chunk from before the read until after the write. A write that begins in the window
 * overtakes the copy, which then skips those pages. The chunk is read only after writes from before
 * the window have ended, so the source has their data. The replica becomes VALID only after the
 * last overtaking writes have ended, for the same reason.
 *
 * Checksums. The volume keeps a checksum of each page as last written. Reads and writes of a page
 * take effect in the order pushed by the host, so a reader takes the expected checksums when
 * pushing the read. On a mismatch, memory was changed behind the volume's back, and another replica
 * is read. A page never written, or discarded, is zeroes by definition and needs no donor. If the
 * first write of such a page fails, the page stays zeroes. A page whose later write failed may hold
 * anything.
 *
 * Repair. Wrong bytes at a VALID replica of a mapped volume are replaced by those of another, as a
 * chunk is filled. A page whose checksum is not known is left alone, and nothing is written whose
 * checksum does not match. The replica stays VALID: readers notice the wrong pages until then. Each
 * notice causes one repair, so that a donor with bad memory causes no endless work.
 *
 * Memory moves by extents. An extent with all pages discarded is thin: its memory is given back,
 * except for a reserve. A write to an extent without memory takes the memory of an idle extent at
 * once; the reserve is refilled later.
 *
 * A donor may want memory back, and limits the extents it keeps; other replicas must leave. Leaving
 * replicas stay in use while replacements are filled elsewhere, in the one slot that an extent has
 * beyond its replicas. A leaving replica becomes STALE only when the extent has more VALID replicas
 * than required. Without room elsewhere, replicas stay where they are.
 *
 * A local disk, if any, is the last resort. Written pages are copied there later, from a VALID
 * replica. A bit for each page says that the disk has the latest version. If no replica can be
 * read, the disk is. An extent with all pages on disk is not lost: once a donor gives memory, the
 * extent is filled from the disk. Until then the extent accepts no writes, so that no write
 * overtakes that copy.
 *
 * The host owns memory, requests and time. borrow.h decides which donor the host asks for memory.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_VOLUME_EXTENTS_H
#define WEIR_CORE_VOLUME_EXTENTS_H

#include "core/base/platform.h"
#include "core/volume/page_seal.h"
#include "core/volume/page_sum.h"

#define WEIR_EXTENTS_DONORS_MAX 64u
#define WEIR_EXTENTS_REPLICAS_MAX 4u
#define WEIR_EXTENTS_WIDTH_MAX 8u /* shards of a code: see coded.h */
#define WEIR_EXTENTS_SLOTS_MAX (WEIR_EXTENTS_WIDTH_MAX + 1)
#define WEIR_EXTENTS_RESERVE_MIN 2u /* one to use while another is being borrowed */
#define WEIR_EXTENTS_KEEPS_ALL UINT64_MAX
#define WEIR_EXTENTS_CHUNK_PAGES 64u /* pages of an extent copied at a time */
#define WEIR_EXTENTS_COPIES_MAX 4u /* extents that are filled at a time */

enum weir_replica_state {
	WEIR_REPLICA_NONE, /* no memory */
	WEIR_REPLICA_FILLING, /* has all writes since its grant, but not all earlier data */
	WEIR_REPLICA_VALID, /* has all data */
	WEIR_REPLICA_STALE, /* its memory goes back once unused */
};

enum weir_extents_donor_state {
	WEIR_EXTENTS_DONOR_DOWN, /* gives no memory, and holds none of the volume's data */
	WEIR_EXTENTS_DONOR_SLOW, /* may come back with its data; other donors are preferred */
	WEIR_EXTENTS_DONOR_UP,
};

/**
 * struct weir_replica - one copy of an extent
 * @donor: number of the donor, unless NONE
 * @state: an enum weir_replica_state
 * @leaves: the donor wants the memory back
 * @shard: the part of a code that it holds: see coded.h
 * @users: reads, writes and copies in progress
 */
struct weir_replica {
	uint8_t donor;
	uint8_t state;
	bool leaves;
	uint8_t shard;
	uint32_t users;
};

/**
 * struct weir_extent - a piece of the volume
 * @replica: the first volume->slots are used
 * @sum: *kept*; expected contents of each page; NOTHING at first
 * @seal: *kept*; seals of the newest contents of each page, by page_seal.h. NULL: not encrypted
 * @local: *kept*; a bit for each page on the local disk; zeroed at first. NULL: no disk
 * @nr_local: bits set in @local
 * @live: pages other than NOTHING: written, successfully or not
 * @thin: all pages discarded, and nothing written since
 * @is_wanted: a request waits until its copies are equal
 * @wrong: a bit for each VALID replica with wrong bytes; @wrong_first, @wrong_end: their pages
 * @donors: a bit for each donor that may hold it, such as the members of its group; 0: any donor
 * @phase: 0 or 1; flips when a copy opens a window
 * @writes: writes in progress, by the phase in which they began
 */
struct weir_extent {
	struct weir_replica replica[WEIR_EXTENTS_SLOTS_MAX];
	uint32_t *sum;
	struct weir_page_seal *seal;
	uint64_t *local;
	uint32_t nr_local;
	uint32_t live;
	uint64_t donors;
	bool thin, is_wanted;
	uint16_t wrong;
	uint32_t wrong_first, wrong_end;
	uint8_t phase;
	uint32_t writes[2];
};

/**
 * struct weir_extents_donor - the volume's view of a donor
 * @state: an enum weir_extents_donor_state
 * @free: extents of free memory, as the host last reported
 * @keep: most extents that the donor wants to hold
 */
struct weir_extents_donor {
	uint8_t state;
	uint64_t free;
	uint64_t keep;
};

enum weir_extents_resync_state {
	WEIR_RESYNC_IDLE,
	WEIR_RESYNC_DRAINING, /* the window is open; waits for writes of the other phase */
	WEIR_RESYNC_READING,
	WEIR_RESYNC_WRITING,
};

/**
 * struct weir_extents_resync - a copy in progress: the only one of its extent
 * @state: an enum weir_extents_resync_state
 * @source: replica of @extent to read; volume->slots: the local disk
 * @target: replica of @extent to fill or repair
 * @is_repair: @target is VALID
 * @extent: number of the extent
 * @tried: a bit for each replica from which the chunk could not be read, or was wrong
 * @page: first page of the chunk; @end: of the copy
 * @pages: pages in the chunk
 * @taken: pages of the chunk written or skipped
 * @overtaken: a bit for each page of the chunk
 */
struct weir_extents_resync {
	uint8_t state;
	uint8_t source, target;
	bool is_repair;
	uint16_t tried;
	uint32_t extent;
	uint32_t page, pages, end, taken;
	uint64_t overtaken;
};

/**
 * struct weir_extents_local_copy - the copy to the local disk
 * @is_busy: pages are being copied
 * @extent: the extent being copied or searched
 * @page: first page being copied, or where to search next
 * @pages: pages being copied
 * @overtaken: a bit for each page changed since it was read
 * @passed: extents searched since a page was found
 */
struct weir_extents_local_copy {
	bool is_busy;
	uint32_t extent;
	uint32_t page, pages;
	uint64_t overtaken;
	uint32_t passed;
};

/**
 * struct weir_extents - the volume
 * @donor: the first @nr_donors are used
 * @extent: @nr_extents of them
 * @nr_extents: at least 1
 * @pages: pages in each extent
 * @nr_donors: 1 to WEIR_EXTENTS_DONORS_MAX
 * @replicas: required replicas of each extent
 * @slots: replica slots of each extent: one more than @replicas if there is another donor
 * @reserve: thin extents that keep their memory
 * @copy: copies that fill replicas
 * @copied: pages copied so far; @repaired: wrong pages, and their neighbours, replaced so far
 * @nr_wanted: extents that are wanted
 * @local: the copy to the local disk
 * @nonces: how many were taken
 * @is_mapped: the host places replicas, by weir_extents_join() and weir_extents_leave(). A VALID
 *	replica becomes STALE only when it leaves, or when the host says that it missed a write
 * @repairs: of a mapped volume: replicas with wrong bytes are repaired
 */
struct weir_extents {
	struct weir_extents_donor donor[WEIR_EXTENTS_DONORS_MAX];
	struct weir_extent *extent;
	uint32_t nr_extents;
	uint32_t pages;
	uint8_t nr_donors;
	uint8_t replicas;
	uint8_t slots;
	uint32_t reserve;
	struct weir_extents_resync copy[WEIR_EXTENTS_COPIES_MAX];
	uint64_t copied, repaired;
	uint32_t nr_wanted;
	struct weir_extents_local_copy local;
	uint64_t nonces;
	bool is_mapped, repairs;
};

/**
 * weir_extents_choose_bytes() - choose the size of a volume's extents
 * @volume_bytes: at least 1
 * @bytes_max: a power of two, at least 1 MiB. The host's loops over extents hold its lock: a host
 *	whose lock may be held for long limits the extents, so that small donors lend something, too
 *
 * Return: a power of two, at least 1 MiB. Up to the limit, a volume has 64 to 128 extents, so that
 *	each donor gets a share.
 */
uint64_t weir_extents_choose_bytes(uint64_t volume_bytes, uint64_t bytes_max);

/* How many thin extents of @nr_extents keep their memory, if the user does not say: an eighth. */
uint32_t weir_extents_choose_reserve(uint32_t nr_extents);

/**
 * weir_extents_init() - initialise a volume without memory, all donors down
 * @v: to be initialised
 * @extents: *kept*; zeroed, except each @sum, @seal and @donors
 * @nr_extents: at least 1
 * @pages: pages of an extent, at least 1
 * @nr_donors: 1 to WEIR_EXTENTS_DONORS_MAX
 * @replicas: 1 to WEIR_EXTENTS_REPLICAS_MAX, or to WEIR_EXTENTS_WIDTH_MAX shards; and at most
 *	@nr_donors
 *
 * @v->reserve is 0 until the host sets it.
 *
 * Return: 0; -EINVAL if an argument is out of its range.
 */
int weir_extents_init(struct weir_extents *v, struct weir_extent *extents, uint32_t nr_extents,
		      uint32_t pages, uint8_t nr_donors, uint8_t replicas);

/**
 * weir_extents_grow() - add extents
 * @v: the volume
 * @extents: *kept*; replaces the old array and begins with a copy of it
 * @nr_extents: at least as many as before
 */
void weir_extents_grow(struct weir_extents *v, struct weir_extent *extents, uint32_t nr_extents);

/* A donor is up. */
void weir_extents_donor_up(struct weir_extents *v, uint8_t donor);

/* A donor has room for this many more extents, as far as the host knows; 0: none for now. */
void weir_extents_donor_room(struct weir_extents *v, uint8_t donor, uint64_t extents);

/* A donor does not answer, and may be up again soon with its data. */
void weir_extents_donor_slow(struct weir_extents *v, uint8_t donor);

/* A donor is gone with its data: its replicas become STALE. */
void weir_extents_donor_lost(struct weir_extents *v, uint8_t donor);

/*
 * A donor wants to keep at most @extents extents; KEEPS_ALL: all of them. Empty extents leave
 * first. The host must repeat the call regularly, since the contents of extents change.
 */
void weir_extents_donor_keeps(struct weir_extents *v, uint8_t donor, uint64_t extents);

/* Return: the number of extents with a replica on this donor, in any state. */
uint32_t weir_extents_donor_extents(const struct weir_extents *v, uint8_t donor);

/* One replica slot of one extent, at a donor. */
struct weir_extents_placement {
	uint32_t extent;
	uint8_t slot;
	uint8_t donor;
};

/**
 * weir_extents_next_placement() - find missing memory and a donor for it
 * @v: the volume
 * @place: receives the placement
 *
 * Chooses the donor with the most room that is up and does not hold the extent. The host asks this
 * donor, and owes a weir_extents_granted() or a weir_extents_donor_room() of 0.
 *
 * Return: 0; -ENOENT if no memory is missing, apart from lost extents and leaving replicas; -ENOSPC
 *	if no donor has room.
 */
int weir_extents_next_placement(const struct weir_extents *v, struct weir_extents_placement *place);

/**
 * weir_extents_granted() - @place->donor has given zeroed memory
 * @v: the volume
 * @place: as requested; receives the place where memory is wanted now
 *
 * Return: 0; -ENOENT if no extent wants the memory: the host gives it back.
 */
int weir_extents_granted(struct weir_extents *v, struct weir_extents_placement *place);

/**
 * weir_extents_adopt() - use existing memory as the only replica of the only extent
 * @v: the volume
 * @sum: *kept*; for @pages pages, set to UNKNOWN
 * @pages: pages in the extent
 */
void weir_extents_adopt(struct weir_extents *v, uint32_t *sum, uint32_t pages);

/* The memory at @place, whose slot was free, is a FILLING replica. */
void weir_extents_join(struct weir_extents *v, const struct weir_extents_placement *place);

/* A FILLING replica has all data, as the host knows: it becomes VALID. */
void weir_extents_trust(struct weir_extents *v, uint32_t extent, uint8_t slot);

/* A live replica becomes STALE, whether or not it has missed a write. */
void weir_extents_leave(struct weir_extents *v, uint32_t extent, uint8_t slot);

/*
 * The extent has data that this volume did not write: all pages become UNKNOWN. A copy that fills
 * a replica of the extent begins again: its next source may differ from the last. No replica of
 * the extent may have users.
 */
void weir_extents_found(struct weir_extents *v, uint32_t extent);

/*
 * Releases memory no longer needed: of thin extents beyond the reserve, if unused and without a
 * slow donor; of leaving replicas, once there are enough others; of FILLING replicas without a
 * source.
 */
void weir_extents_trim(struct weir_extents *v);

/**
 * weir_extents_next_return() - find memory to give back
 * @v: the volume
 * @donors: a bit for each donor that can be told, or need not be
 * @place: receives the place; the host owes a weir_extents_returned()
 *
 * Return: true if there is any.
 */
bool weir_extents_next_return(struct weir_extents *v, uint64_t donors,
			      struct weir_extents_placement *place);

/*
 * @is_returned: the donor has its memory back. Otherwise the memory stays assigned, and the host
 *	must try again.
 */
void weir_extents_returned(struct weir_extents *v, const struct weir_extents_placement *place,
			   bool is_returned);

/* Both in one step, for any donor. Return: true: the host gives back the memory at @place. */
bool weir_extents_reclaim(struct weir_extents *v, struct weir_extents_placement *place);

/**
 * weir_extents_provide() - find memory for an extent about to be written
 * @v: the volume
 * @extent: number of the extent
 * @from: receives @extent if memory was there, or else the extent that exchanged memory with
 *	@extent, slot by slot. The host makes the same exchange before unlocking
 *
 * Return: 0; -EAGAIN until a donor gives memory, a slow donor answers, or the extent is filled from
 *	the local disk; -ENOSPC if no donor has any; -EIO if the extent is lost.
 */
int weir_extents_provide(struct weir_extents *v, uint32_t extent, uint32_t *from);

/**
 * weir_extents_discard() - turn pages into zeroes
 * @v: the volume
 * @extent: number of the extent
 * @page: first page
 * @pages: number of pages
 * @keep: the extent keeps wanting memory
 */
void weir_extents_discard(struct weir_extents *v, uint32_t extent, uint32_t page, uint32_t pages,
			  bool keep);

/* Whether all pages are NOTHING, so that no donor needs to be read. */
bool weir_extents_is_blank(const struct weir_extents *v, uint32_t extent, uint32_t page,
			   uint32_t pages);

/**
 * weir_extents_read() - choose a replica to read, at an UP donor if there is one
 * @v: the volume
 * @extent: number of the extent
 * @tried: a bit for each replica already tried
 * @slot: receives the replica; the host owes a weir_extents_read_end()
 *
 * Return: 0; -EIO if no other replica is VALID.
 */
int weir_extents_read(struct weir_extents *v, uint32_t extent, uint8_t tried, uint8_t *slot);
void weir_extents_read_end(struct weir_extents *v, uint32_t extent, uint8_t slot);

/**
 * weir_extents_expect() - the expected contents of pages, for a read pushed now
 * @v: the volume
 * @extent: number of the extent
 * @page: first page
 * @pages: number of pages
 * @sums: receives @pages values; for NOTHING the host fills in zeroes
 */
void weir_extents_expect(const struct weir_extents *v, uint32_t extent, uint32_t page,
			 uint32_t pages, uint32_t *sums);

/*
 * A replica has wrong data in some of @pages pages. Makes the replica STALE, unless no other is
 * VALID. A mapped volume repairs it instead. Return: true if another replica is to be read.
 */
bool weir_extents_distrust(struct weir_extents *v, uint32_t extent, uint8_t slot, uint32_t page,
			   uint32_t pages);

/* A bit for each replica that a write would go to; 0: no replica is VALID. */
uint8_t weir_extents_writable(const struct weir_extents *v, uint32_t extent);

/**
 * struct weir_extents_write - a write in progress
 * @extent: number of the extent
 * @phase: phase of the extent when the write began
 * @slots: a bit for each replica written, from weir_extents_writable()
 * @page: first page
 * @pages: number of pages
 * @sums: checksums of the pages; *kept until the write ends*
 */
struct weir_extents_write {
	uint32_t extent;
	uint32_t page, pages;
	const uint32_t *sums;
	uint8_t phase;
	uint8_t slots;
};

/**
 * weir_extents_write() - begin a write
 * @v: the volume
 * @w: receives the write
 * @extent: number of the extent
 * @page: first page, within the extent
 * @pages: number of pages
 * @sums: checksums of the pages, even and not 0; *kept until the write ends*
 *
 * The host pushes the write to all @w->slots before unlocking, and owes a weir_extents_write_end()
 * when all have ended.
 *
 * Return: 0; -EIO if the extent has no VALID replica.
 */
int weir_extents_write(struct weir_extents *v, struct weir_extents_write *w, uint32_t extent,
		       uint32_t page, uint32_t pages, const uint32_t *sums);

/**
 * weir_extents_write_end() - a write has ended at all its replicas
 * @v: the volume
 * @w: the write
 * @failed: a bit for each replica that may lack the data
 *
 * Return: 0; -EIO if the write failed: pages may be old or new, but all reads agree.
 */
int weir_extents_write_end(struct weir_extents *v, const struct weir_extents_write *w,
			   uint8_t failed);

/**
 * weir_extents_write_undo() - a write of a mapped volume has ended, and will begin again
 * @v: the volume
 * @w: the write
 * @failed: a bit for each replica that may lack the data
 *
 * A member that stands in the map has missed the write. Its pages are unknown until the write
 * begins again. VALID replicas stay VALID: each page there is old or new. A FILLING replica that
 * missed the write becomes STALE: a resync may have skipped the pages.
 */
void weir_extents_write_undo(struct weir_extents *v, const struct weir_extents_write *w,
			     uint8_t failed);

enum weir_extents_copy_op {
	WEIR_EXTENTS_COPY_NOTHING, /* no replica to fill */
	WEIR_EXTENTS_COPY_WAIT, /* ask again when a write of this volume has ended */
	WEIR_EXTENTS_COPY_READ, /* from @slot */
	WEIR_EXTENTS_COPY_WRITE, /* to @slot; the host pushes the write before unlocking */
	WEIR_EXTENTS_COPY_READ_LOCAL, /* from the local disk */
};

/**
 * struct weir_extents_copy_step - the next step of a copy
 * @what: an enum weir_extents_copy_op
 * @extent: number of the extent
 * @slot: the replica
 * @page: first page
 * @pages: number of pages
 * @offset: offset of these pages in the data read, in pages
 */
struct weir_extents_copy_step {
	uint8_t what;
	uint8_t slot;
	uint32_t extent;
	uint32_t page, pages, offset;
};

/* The extent's copies are filled before those of others that nobody waits for. */
void weir_extents_want(struct weir_extents *v, uint32_t extent);

/*
 * Gets the next step of a copy. @number: less than COPIES_MAX. After a read or a write the host
 * owes a weir_extents_resync_done() before the next step of this number.
 */
void weir_extents_resync_next(struct weir_extents *v, uint8_t number,
			      struct weir_extents_copy_step *step);

/**
 * weir_extents_resync_accept() - whether the pages of a step may be used
 * @v: the volume
 * @step: the step, which has succeeded
 * @is_match: the pages read have the expected checksums; true for a write
 *
 * A chunk with a wrong page is read from another replica. To fill a replica, the last replica's
 * chunk is accepted for the sake of its other pages: a reader of the wrong page will notice the
 * mismatch. A repair accepts none.
 */
bool weir_extents_resync_accept(struct weir_extents *v, const struct weir_extents_copy_step *step,
				bool is_match);

/*
 * Takes the checksums of a chunk that was read, and is accepted, for its UNKNOWN pages. @sums: one
 * for each page of the chunk.
 */
void weir_extents_resync_learn(struct weir_extents *v, uint8_t number, const uint32_t *sums);
void weir_extents_resync_done(struct weir_extents *v, uint8_t number, bool succeeded);

/* Return: the number of the copy that fills a replica of the extent, or COPIES_MAX. */
uint8_t weir_extents_copy_of(const struct weir_extents *v, uint32_t extent);

/* Whether each page is on the local disk or NOTHING. */
bool weir_extents_local_has(const struct weir_extents *v, uint32_t extent, uint32_t page,
			    uint32_t pages);

/* Whether the extent is not empty and the local disk has all its pages. */
bool weir_extents_is_local(const struct weir_extents *v, uint32_t extent);

/**
 * weir_extents_local_next() - choose pages to copy to the local disk
 * @v: the volume
 * @step: receives READ: the host reads the pages from the replica, pushed before unlocking. The
 *	host then owes a weir_extents_read_end() and, when the disk is written, a
 *	weir_extents_local_done(). WAIT: ask again, the search is not finished. NOTHING: the disk is
 *	up to date until the next write
 */
void weir_extents_local_next(struct weir_extents *v, struct weir_extents_copy_step *step);

/* @succeeded: the disk holds the pages, and their checksums matched. */
void weir_extents_local_done(struct weir_extents *v, bool succeeded);

/* Begins the copy of this extent again, if there is one. For the core's own use. */
void weir_extents_resync_restart(struct weir_extents *v, uint32_t extent);

/* A page has changed. For the core's own use. */
void weir_extents_local_forget(struct weir_extents *v, uint32_t extent, uint32_t page);

/* The number of VALID replicas of an extent. */
uint8_t weir_extents_count_valid(const struct weir_extents *v, uint32_t extent);

/* Whether an extent has lost its data: no replica is VALID, and the local disk is incomplete. */
bool weir_extents_is_lost(const struct weir_extents *v, uint32_t extent);

/**
 * struct weir_extents_census - extents by condition
 * @whole: all replicas VALID
 * @lean: at least one replica VALID, but not all
 * @bare: no replica VALID
 * @local: no replica VALID, but all on the local disk; not counted in @bare
 * @lost: the @bare extents that held data
 * @thin: extents that want no memory
 * @leaving: extents with a leaving replica
 * @behind: pages missing on the local disk, including unknown pages
 */
struct weir_extents_census {
	uint32_t whole, lean, bare, local, lost, thin, leaving;
	uint64_t behind;
};

struct weir_extents_census weir_extents_census(const struct weir_extents *v);

#endif
