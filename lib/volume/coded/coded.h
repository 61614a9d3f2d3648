/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A volume with a code: core/volume/coded.h over the requests, sessions and map that volumes with
 * copies have. A shard is in a replica slot of the core, and its region at a donor.
 *
 * A piece lies in one stripe, and the order of requests is in stripes: so a stripe has one writer
 * or any number of readers at a time. A write of a part of a stripe reads the rest first, and
 * writes the stripe to another place.
 *
 * New shards are filled by requests of the volume's own, a few at a time: each reads a stripe, and
 * writes the fragments that shards lack. So they wait for writes of that stripe, and none overtakes
 * them.
 */
#ifndef WEIR_LIB_VOLUME_CODED_CODED_H
#define WEIR_LIB_VOLUME_CODED_CODED_H

#include "core/volume/coded.h"
#include "lib/volume/coded/erasure.h"
#include "lib/volume/request.h"

#define WEIR_VOLUME_REPAIRS_MAX 4u /* at a time: as many bytes as a chunk of copies */
#define WEIR_VOLUME_FRAGMENT_BYTES (WEIR_CODED_FRAGMENT_PAGES * WEIR_VOLUME_PAGE_BYTES)

/**
 * struct weir_volume_coded - what a volume with a code has besides
 * @layout: of all extents; @erasure: the code; @epoch: of this client's generations
 * @extent: the coded extents, guarded by the volume's lock
 * @waiters: pieces that wait for a place
 * @repair: the volume's own requests: under way if they have a length
 * @at_extent, @at_stripe: where to look for the next; @retry_ns: after a failure, not before
 */
struct weir_volume_coded {
	struct weir_coded_layout layout;
	struct weir_volume_erasure erasure;
	uint64_t epoch;
	struct weir_coded_extent *extent;
	struct weir_list waiters;
	struct weir_volume_request *repair[WEIR_VOLUME_REPAIRS_MAX];
	uint32_t at_extent, at_stripe;
	uint64_t retry_ns;
};

/*
 * Allocates @v->coded, and chooses @v->stripe but for its width. @extent_bytes: most bytes of an
 * extent; @id: of the volume; @epoch: of the claim. Context: the opening thread.
 * Return: 0; -ENOMEM.
 */
int weir_volume_coded_init(struct weir_volume *v, uint8_t data, uint8_t spare,
			   uint64_t extent_bytes, uint64_t id, uint64_t epoch);
/* Allocates the extents. Context: the opening thread. Return: 0; -ENOMEM. */
int weir_volume_coded_lay_out(struct weir_volume *v);
/* Frees all; @v->coded may be NULL. Context: no thread uses the volume. */
void weir_volume_coded_fini(struct weir_volume *v);

/*
 * Finds the stripes that earlier clients left in an extent that no request uses yet. @counting: the
 * slots of shards that count; @found: those among them whose memory was there. Shards become VALID.
 * After a failure, the extent is as before, and the donor is suspected. Context: the maintaining
 * thread.
 */
void weir_volume_coded_recover(struct weir_volume *v, uint32_t extent, uint16_t counting,
			       uint16_t found);

/* Clears the records of a shard that does not count. Context: the maintaining thread. */
int weir_volume_coded_clear(struct weir_volume *v, struct weir_region *region);

/* All functions below: with the lock held. */

/* Begins a piece; continues one whose operations have ended, or that has waited. */
void weir_volume_coded_piece_begin(struct weir_volume_piece *piece);
void weir_volume_coded_piece_continue(struct weir_volume_piece *piece);
void weir_volume_coded_piece_resume(struct weir_volume_piece *piece, bool cancel);

/* Shards that have all stripes of an extent become VALID. */
void weir_volume_coded_trust(struct weir_volume *v, uint32_t extent);

/* Fills the next stripes that shards lack, if there are any. */
void weir_volume_coded_repair_start(struct weir_volume *v);
void weir_volume_coded_repair_ended(struct weir_volume_request *r);

#endif
