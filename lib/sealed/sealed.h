/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The struct of a sealed region, and its generations and ranges. */
#ifndef WEIR_LIB_SEALED_SEALED_H
#define WEIR_LIB_SEALED_SEALED_H

#include <pthread.h>
#include <stdbool.h>
#include <weir/region.h>
#include <weir/sealed.h>
#include "core/base/list.h"
#include "lib/sealed/slot.h"

struct weir_pool;

/* Slots in one request. A long read or write decrypts or encrypts some while others move. */
#define WEIR_SEALED_CHUNK 32u
/* Requests that one call has in flight. */
#define WEIR_SEALED_AT_ONCE 8u
/* Buffers of all calls. A call that has one in flight does not wait for another. */
#define WEIR_SEALED_BUFFERS 32u

/* Blocks that a write owns. In the list of its handle, in order of arrival. */
struct weir_sealed_range {
	struct weir_list link;
	uint64_t first, last;
};

/**
 * struct weir_sealed - an open sealed region
 * @region: the caller's
 * @pool: of buffers of WEIR_SEALED_CHUNK slots
 * @keys: of the data
 * @writer: the random id of this opening
 * @cipher: of writes
 * @blocks: of data
 * @is_new: a block without a known generation was never written
 * @counter: blocks sealed; atomic
 * @latest: the greatest generation given; atomic
 * @altered, @rolled_back: blocks that ended calls; atomic
 * @seen: the greatest generation of each block that was read or written, 0 if none was; atomic
 * @range_lock: guards @ranges; a range has left when @range_left is signalled
 */
struct weir_sealed {
	struct weir_region *region;
	struct weir_pool *pool;
	struct weir_sealed_keys *keys;
	uint8_t writer[WEIR_SLOT_WRITER];
	uint32_t cipher;
	uint64_t blocks;
	bool is_new;
	uint64_t counter;
	uint64_t latest;
	uint64_t altered, rolled_back;
	uint64_t *seen;
	pthread_mutex_t range_lock;
	pthread_cond_t range_left;
	struct weir_list ranges;
};

/* The generation below which a slot of @block is a rollback; 0: none is known. */
uint64_t weir_sealed_floor(const struct weir_sealed *sealed, uint64_t block);
/* Remembers a generation of @block that was read or written. */
void weir_sealed_saw(struct weir_sealed *sealed, uint64_t block, uint64_t generation);

/*
 * Waits until no earlier range overlaps, and owns the blocks until weir_sealed_range_leave().
 * Context: sleeps.
 */
void weir_sealed_range_enter(struct weir_sealed *sealed, struct weir_sealed_range *range);
void weir_sealed_range_leave(struct weir_sealed *sealed, struct weir_sealed_range *range);

#endif
