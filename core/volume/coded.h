/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Extents of a volume with a code k+r. Each replica slot of core/volume/extents.h holds one shard
 * of the extent; any k shards are enough to read it.
 *
 * A stripe is k fragments of consecutive pages, and r fragments of parity, one in each shard. No
 * stripe is changed in place: each write takes a free place of the extent, the same in all shards.
 *
 *	shard    | records | place 0 | place 1 | ... | one fragment in each place
 *
 * A write has two steps. First the fragments go to the place, in all shards that are VALID or
 * FILLING. When all shards have them, or are out, the place's record goes to the same shards: it
 * tells the stripe and the generation. When all shards have the record, the write is done, and the
 * former place of the stripe is free. So:
 *
 * - A record of a generation in any shard proves that all shards that count have the fragments.
 * - A shard that counts has the record of the last write done, or of a newer one.
 *
 * After the death of a writer, the next one reads the records of all shards that count. Of each
 * stripe the newest record wins. The new writer completes that record in all shards before it uses
 * the extent. Fragments without a record are never read. So a stripe is old or new, and no mixture.
 *
 * A generation is the writer's epoch and a number. Epochs grow from one writer to the next, so two
 * writers never make the same generation. A shard that does not count, because it is still being
 * filled, has its records cleared before the new writer uses it.
 *
 * A read needs the fragments with its pages, or else any k fragments of the stripe. Each place
 * knows the slots that have it: a shard being filled may be read where it is. A shard with each
 * place in use is whole. A stripe is written, repaired or read at a time: the host orders requests
 * by stripes.
 *
 * A fragment whose checksum is wrong is not read until it is repaired at its place: the record
 * already says which bytes are right. A read that notices wrong bytes, or goes around them, makes
 * one repair due. So a repair that fails comes again, but a donor with bad memory causes no endless
 * work. A shard being filled gets repairs until it is whole.
 *
 * The host encodes, moves bytes, and keeps time.
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_VOLUME_CODED_H
#define WEIR_CORE_VOLUME_CODED_H

#include "core/base/platform.h"
#include "core/volume/extents.h"

#define WEIR_CODED_FRAGMENT_PAGES 4u
#define WEIR_CODED_STRIPE_PAGES_MAX (WEIR_CODED_FRAGMENT_PAGES * WEIR_EXTENTS_WIDTH_MAX)
#define WEIR_CODED_NO_PLACE UINT32_MAX

/**
 * struct weir_coded_layout - the same for all extents of a volume
 * @data: shards that are enough, k; @width: shards, k + r, at most WEIR_EXTENTS_WIDTH_MAX
 * @stripes: of an extent; @places: for them, a few more
 * @volume: its id, so that a record of another volume is none
 */
struct weir_coded_layout {
	uint8_t data, width;
	uint32_t stripes, places;
	uint64_t volume;
};

/**
 * struct weir_coded_record - what a place holds, as the shards store it
 * @epoch, @number: the generation; an epoch is not 0
 * @sum: CRC32C of each shard's fragment, by shard
 * @check: of the other members and the place: an incomplete record is none
 */
struct weir_coded_record {
	uint64_t epoch, number;
	uint32_t stripe, unused;
	uint32_t sum[WEIR_EXTENTS_WIDTH_MAX];
	uint64_t check;
};

enum weir_coded_place_state {
	WEIR_CODED_FREE,
	WEIR_CODED_WRITING, /* or in doubt, until the next writer */
	WEIR_CODED_CURRENT, /* of its stripe */
};

/**
 * struct weir_coded_place - a place
 * @state: an enum weir_coded_place_state; @stripe: unless FREE
 * @at: a bit for each slot that has it right, or is getting it
 * @is_due: a repair of VALID slots is
 */
struct weir_coded_place {
	uint8_t state;
	bool is_due;
	uint16_t at;
	uint32_t stripe;
};

/**
 * struct weir_coded_extent - an extent
 * @place: *kept*; zeroed at first, layout->places of them
 * @record: *kept*; of each stripe that has a place
 * @current: *kept*; the place of each stripe, or WEIR_CODED_NO_PLACE: zeroes
 * @sum: *kept*; expected checksum of each page, by stripe, shard and page: see page_sum.h
 * @number: of the last generation
 * @next: where to look for a free place
 * @has_due: a repair of some place may be due
 */
struct weir_coded_extent {
	struct weir_coded_place *place;
	struct weir_coded_record *record;
	uint32_t *current, *sum;
	uint64_t number;
	uint32_t next;
	bool has_due;
};

/* A write in progress. @place: where its fragments go; @record: for that place */
struct weir_coded_write {
	uint32_t place;
	struct weir_coded_record record;
};

/**
 * weir_coded_lay_out() - choose how extents are made of stripes
 * @layout: receives all but @volume
 * @data, @spare: k and r, at least 1; at most WEIR_EXTENTS_WIDTH_MAX together
 * @extent_pages: most pages of data in an extent; it has one stripe at least
 */
void weir_coded_lay_out(struct weir_coded_layout *layout, uint8_t data, uint8_t spare,
			uint32_t extent_pages);

/* Pages of data in a stripe, and in an extent; pages of a shard, its records included. */
static inline uint32_t weir_coded_stripe_pages(const struct weir_coded_layout *layout)
{
	return layout->data * WEIR_CODED_FRAGMENT_PAGES;
}

static inline uint32_t weir_coded_extent_pages(const struct weir_coded_layout *layout)
{
	return layout->stripes * weir_coded_stripe_pages(layout);
}

uint32_t weir_coded_record_pages(const struct weir_coded_layout *layout);
uint32_t weir_coded_shard_pages(const struct weir_coded_layout *layout);

/* The first page of a place in a shard. */
uint32_t weir_coded_place_page(const struct weir_coded_layout *layout, uint32_t place);

/* The expected checksum of a page of a fragment, in @c->sum. */
static inline uint32_t *weir_coded_sum(const struct weir_coded_layout *layout,
				       const struct weir_coded_extent *c, uint32_t stripe,
				       uint8_t shard)
{
	return c->sum + (stripe * layout->width + shard) * WEIR_CODED_FRAGMENT_PAGES;
}

/* Empties an extent: no stripe has a place. */
void weir_coded_init(const struct weir_coded_layout *layout, struct weir_coded_extent *c);

/**
 * struct weir_coded_set - the shards that a read uses
 * @slot: by shard; of those in @shards
 * @shards: a bit for each shard to read
 * @slots: the same by slot
 * @is_direct: these are the wanted shards; otherwise k shards, to compute others from
 */
struct weir_coded_set {
	uint8_t slot[WEIR_EXTENTS_WIDTH_MAX];
	uint16_t shards, slots;
	bool is_direct;
};

/**
 * weir_coded_choose() - choose the shards for a read of a stripe
 * @layout, @v, @c: the volume, and its extent @extent
 * @stripe: the stripe
 * @tried: a bit for each slot already tried
 * @wanted: a bit for each shard with pages to be read
 * @set: receives the choice; the host owes a weir_coded_release() of @set->slots
 *
 * Shards whose donors are UP come first: the read is direct unless a wanted shard's donor is not
 * UP, and k others are. Of a stripe without a place, any shard is chosen: its donor refuses a
 * client that has lost the volume. If a live slot lacks the stripe, a repair is due.
 *
 * Return: 0; -EIO: fewer than k shards are left, and not all that are wanted.
 */
int weir_coded_choose(const struct weir_coded_layout *layout, struct weir_extents *v,
		      struct weir_coded_extent *c, uint32_t extent, uint32_t stripe,
		      uint16_t tried, uint16_t wanted, struct weir_coded_set *set);

/* Counts the slots as used, so that their memory stays; and ends that. */
void weir_coded_hold(struct weir_extents *v, uint32_t extent, uint16_t slots);
void weir_coded_release(struct weir_extents *v, uint32_t extent, uint16_t slots);

/* A bit for each slot that is VALID or FILLING. */
uint16_t weir_coded_live(const struct weir_extents *v, uint32_t extent);

/* Whether the VALID shards among @slots are enough to read the extent. */
bool weir_coded_is_enough(const struct weir_coded_layout *layout, const struct weir_extents *v,
			  uint32_t extent, uint16_t slots);

/**
 * weir_coded_begin() - begin a write
 * @layout, @c: the extent
 * @stripe: which no other write uses
 * @epoch: the writer's, larger than that of each earlier writer
 * @sums: CRC32C of each shard's fragment
 * @slots: that get the write
 * @w: receives the write
 *
 * Return: 0: the host owes a weir_coded_commit() or weir_coded_cancel(); -EAGAIN: no place is free
 *	until another write of the extent ends.
 */
int weir_coded_begin(const struct weir_coded_layout *layout, struct weir_coded_extent *c,
		     uint32_t extent, uint32_t stripe, uint64_t epoch, const uint32_t *sums,
		     uint16_t slots, struct weir_coded_write *w);

/* The slots of a write that have failed are out or FILLING: the write goes on without them. */
void weir_coded_drop(struct weir_coded_extent *c, const struct weir_coded_write *w,
		     uint16_t slots);

/* The remaining slots have the fragments and the record. */
void weir_coded_commit(struct weir_coded_extent *c, const struct weir_coded_write *w);

/* No record was sent: the place is free. If one was, the place stays in doubt, without this. */
void weir_coded_cancel(struct weir_coded_extent *c, const struct weir_coded_write *w);

/* The slot belongs to a shard that has no stripe. */
void weir_coded_join(const struct weir_coded_layout *layout, struct weir_coded_extent *c,
		     uint8_t slot);

/* @slots have wrong bytes in a current place. They are not read until they are repaired. */
void weir_coded_distrust(struct weir_coded_extent *c, uint32_t stripe, uint16_t slots);

/* A repair has ended: only @slots have got fragment and record of a current place. None is due. */
void weir_coded_repaired(struct weir_coded_extent *c, uint32_t stripe, uint16_t slots);

/* Whether a slot has all places in use, those being written included. */
bool weir_coded_is_whole(const struct weir_coded_layout *layout,
			 const struct weir_coded_extent *c, uint8_t slot);

/* Stripes with a place, and how many of them a slot has. */
uint32_t weir_coded_count(const struct weir_coded_layout *layout,
			  const struct weir_coded_extent *c);
uint32_t weir_coded_count_at(const struct weir_coded_layout *layout,
			     const struct weir_coded_extent *c, uint8_t slot);

/* The live slots that lack a stripe with a place, or have it wrong. */
uint16_t weir_coded_lacking(const struct weir_extents *v, const struct weir_coded_extent *c,
			    uint32_t extent, uint32_t stripe);

/**
 * weir_coded_next_repair() - find a stripe that a live slot lacks, or has wrong
 * @layout, @v: the volume; @extents: its coded extents
 * @extent, @stripe: where to search first; receive what was found
 *
 * Only extents that can be read are searched, and wanted ones first.
 *
 * Return: true if a stripe was found.
 */
bool weir_coded_next_repair(const struct weir_coded_layout *layout, struct weir_extents *v,
			    struct weir_coded_extent *extents, uint32_t *extent, uint32_t *stripe);

/**
 * weir_coded_recover() - find the stripes that earlier writers left
 * @layout, @c: the extent, emptied first
 * @extent: its number
 * @records: the records of each slot in @slots, layout->places for each slot; others NULL
 * @slots: that count: each has all fragments of each record in any of them
 *
 * The host then writes the record of each stripe to the slots of @slots that lack it, before it
 * trusts them: see weir_coded_lacks_record().
 *
 * Return: 0; -EIO the records contradict each other, or a stripe is out of range.
 */
int weir_coded_recover(const struct weir_coded_layout *layout, struct weir_coded_extent *c,
		       uint32_t extent, const struct weir_coded_record *const *records,
		       uint16_t slots);

/* Whether a slot, whose records are given, lacks the record of a stripe. */
bool weir_coded_lacks_record(const struct weir_coded_extent *c, uint32_t stripe,
			     const struct weir_coded_record *records);

#endif
