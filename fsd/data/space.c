/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The allocator. Free runs of blocks carry their length at both ends (boundary tags), so that a
 * freed extent merges with its neighbours at once. Lists by power of two of the length hold the
 * runs.
 *
 * Placement decides how contiguous files are. A growing file continues at its end if the next block
 * is free. Otherwise a small request takes the smallest run that fits. A large request, or one for
 * a growing file, takes the largest run, but starts in the middle of the run: the run probably
 * follows another growing file, and both files then have room. Files that grow in parallel thus get
 * few large extents.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/data/space.h"

#define SMALL_BLOCKS 16 /* smaller requests fill gaps, ... */
#define GROWING_BLOCKS 8 /* ... unless they follow at least this many blocks of their file */
#define FIT_TRIES 8 /* runs examined in the list that may have one long enough */
#define CLEAN_BYTES_MAX (16u << 20) /* zeroed while a request waits: about 2 ms */
#define CHUNK_ALIGN (2u << 20) /* so that a short last chunk still uses huge pages */

/* A tag per block. All zero: in use, or inside a free run. */
struct fsd_tag {
	uint32_t length; /* blocks of the free run that begins or ends here */
	uint32_t prev, next; /* for a run that begins here: list neighbours as block + 1, or 0 */
};

void fsd_space_init(struct fsd_space *space, const struct fsd_host *host, uint64_t bytes_max,
		    uint64_t chunk_bytes)
{
	memset(space, 0, sizeof(*space));
	space->host = host;
	space->bytes_max = bytes_max / FS_BLOCK * FS_BLOCK;
	space->chunk_bytes = chunk_bytes;
	TAILQ_INIT(&space->dirty_list);
}

void fsd_space_fini(struct fsd_space *space)
{
	struct fsd_freed *freed;

	while ((freed = TAILQ_FIRST(&space->dirty_list))) {
		TAILQ_REMOVE(&space->dirty_list, freed, entry);
		fsd_map_fini(&freed->map);
		free(freed);
	}
	for (uint32_t i = 0; i < space->nr_chunks; i++)
		free(space->chunk[i].tag);
	free(space->chunk);
}

static struct fsd_tag *tag(const struct fsd_space *space, uint32_t block)
{
	uint32_t chunk_blocks = space->chunk_bytes / FS_BLOCK;

	return &space->chunk[block / chunk_blocks].tag[block % chunk_blocks];
}

static unsigned int class_of(uint32_t blocks)
{
	return 31 - __builtin_clz(blocks);
}

static void run_add(struct fsd_space *space, uint32_t block, uint32_t length)
{
	struct fsd_tag *first = tag(space, block);
	unsigned int class = class_of(length);

	first->length = length;
	tag(space, block + length - 1)->length = length;
	first->prev = 0;
	first->next = space->head[class];
	if (first->next)
		tag(space, first->next - 1)->prev = block + 1;
	space->head[class] = block + 1;
	space->classes |= 1u << class;
}

static void run_remove(struct fsd_space *space, uint32_t block)
{
	struct fsd_tag *first = tag(space, block);
	uint32_t length = first->length;
	unsigned int class = class_of(length);

	if (first->next)
		tag(space, first->next - 1)->prev = first->prev;
	if (first->prev)
		tag(space, first->prev - 1)->next = first->next;
	else
		space->head[class] = first->next;
	if (!space->head[class])
		space->classes &= ~(1u << class);
	tag(space, block + length - 1)->length = 0;
	memset(first, 0, sizeof(*first));
}

/*
 * Finds the smallest run of at least @want among the first runs of its list, or any run of a longer
 * list.
 */
static bool find_fitting(const struct fsd_space *space, uint32_t want, uint32_t *block)
{
	unsigned int class = class_of(want);
	uint32_t at = space->head[class], best = 0, best_length = UINT32_MAX;
	uint32_t longer;

	for (int tries = 0; at && tries < FIT_TRIES; tries++) {
		const struct fsd_tag *t = tag(space, at - 1);

		if (t->length >= want && t->length < best_length) {
			best = at;
			best_length = t->length;
		}
		at = t->next;
	}
	longer = class < 31 ? space->classes >> (class + 1) << (class + 1) : 0;
	if (!best && longer)
		best = space->head[__builtin_ctz(longer)];
	*block = best - 1;
	return best;
}

static uint32_t longest_run(const struct fsd_space *space)
{
	return space->head[class_of(space->classes)] - 1;
}

static bool begins_chunk(const struct fsd_space *space, uint32_t block)
{
	return (uint64_t)block * FS_BLOCK % space->chunk_bytes == 0;
}

/* Takes @count blocks from @at on, out of the run that starts at @run. */
static void claim_blocks(struct fsd_space *space, uint32_t run, uint32_t at, uint32_t count)
{
	uint32_t end = run + tag(space, run)->length;

	run_remove(space, run);
	if (at > run)
		run_add(space, run, at - run);
	if (at + count < end)
		run_add(space, at + count, end - at - count);
	space->free -= (uint64_t)count * FS_BLOCK;
}

static bool is_free_run(const struct fsd_space *space, uint64_t goal)
{
	/* The block before the goal is in use, so a tag at the goal marks the start of a run. */
	return goal < space->total && tag(space, goal / FS_BLOCK)->length;
}

static bool fills_gaps(const struct wire_fs_extent *before, uint32_t want)
{
	return want < SMALL_BLOCKS && !(before && before->length >= GROWING_BLOCKS * FS_BLOCK);
}

uint64_t fsd_space_take(struct fsd_space *space, const struct wire_fs_extent *before,
			uint64_t bytes, uint64_t *volume)
{
	uint64_t goal = before ? before->volume + before->length : UINT64_MAX;
	uint64_t blocks = bytes / FS_BLOCK;
	uint32_t want = blocks < UINT32_MAX / 8 ? blocks : UINT32_MAX / 8;
	uint32_t run, at, length;

	if (!space->classes || !want)
		return 0;
	if (is_free_run(space, goal)) {
		run = at = goal / FS_BLOCK;
	} else if (fills_gaps(before, want) && find_fitting(space, want, &run)) {
		at = run;
	} else {
		run = at = longest_run(space);
		length = tag(space, run)->length;
		if (length >= 4 * want && !begins_chunk(space, run))
			at += length / 2;
	}
	length = run + tag(space, run)->length - at;
	if (length > want)
		length = want;
	claim_blocks(space, run, at, length);
	*volume = (uint64_t)at * FS_BLOCK;
	return (uint64_t)length * FS_BLOCK;
}

void fsd_space_give(struct fsd_space *space, uint64_t volume, uint64_t bytes)
{
	uint32_t block = volume / FS_BLOCK, length = bytes / FS_BLOCK;
	uint32_t end = block + length, before;

	space->free += bytes;
	if (!begins_chunk(space, block) && (before = tag(space, block - 1)->length)) {
		block -= before;
		length += before;
		run_remove(space, block);
	}
	if ((uint64_t)end * FS_BLOCK < space->total && !begins_chunk(space, end) &&
	    tag(space, end)->length) {
		length += tag(space, end)->length;
		run_remove(space, end);
	}
	run_add(space, block, length);
}

void fsd_space_give_dirty(struct fsd_space *space, struct fsd_freed *freed)
{
	space->dirty += freed->map.bytes;
	TAILQ_INSERT_TAIL(&space->dirty_list, freed, entry);
}

void fsd_space_clean(struct fsd_space *space, uint64_t bytes_max)
{
	struct fsd_freed *freed;
	struct wire_fs_extent extent;

	while (bytes_max && (freed = TAILQ_FIRST(&space->dirty_list))) {
		if (!fsd_map_pop(&freed->map, bytes_max, &extent)) {
			TAILQ_REMOVE(&space->dirty_list, freed, entry);
			fsd_map_fini(&freed->map);
			free(freed);
			continue;
		}
		if (!space->host->data)
			memset(fsd_space_memory(space, extent.volume), 0, extent.length);
		space->dirty -= extent.length;
		fsd_space_give(space, extent.volume, extent.length);
		bytes_max -= extent.length;
	}
}

static uint64_t host_bytes_left(const struct fsd_space *space)
{
	uint64_t room, left = space->bytes_max - space->total;

	if (space->total % space->chunk_bytes) /* the last chunk is a short one */
		return 0;
	room = space->host->room(space->host->arg);
	return (room < left ? room : left) / FS_BLOCK * FS_BLOCK;
}

uint64_t fsd_space_room(const struct fsd_space *space)
{
	return space->free + space->dirty + host_bytes_left(space);
}

static int take_chunk(struct fsd_space *space)
{
	uint64_t length = host_bytes_left(space);
	struct fsd_chunk *chunk;
	void *memory;

	if (length >= space->chunk_bytes)
		length = space->chunk_bytes;
	else if (length > CHUNK_ALIGN)
		length = length / CHUNK_ALIGN * CHUNK_ALIGN;
	if (!length || space->total + length > (uint64_t)UINT32_MAX * FS_BLOCK)
		return -ENOSPC;
	chunk = realloc(space->chunk, (space->nr_chunks + 1) * sizeof(*chunk));
	if (!chunk)
		return -ENOSPC;
	space->chunk = chunk;
	chunk += space->nr_chunks;
	chunk->tag = calloc(length / FS_BLOCK, sizeof(*chunk->tag));
	if (!chunk->tag)
		return -ENOSPC;
	space->stuck = space->host->take_chunk(space->host->arg, length, &chunk->wire, &memory);
	if (space->stuck) {
		free(chunk->tag);
		return -ENOSPC;
	}
	chunk->memory = memory;
	space->nr_chunks++;
	space->total += length;
	fsd_space_give(space, space->total - length, length);
	return 0;
}

bool fsd_space_is_short(const struct fsd_space *space)
{
	return space->free + space->dirty < space->chunk_bytes / 2 && !space->stuck &&
	       host_bytes_left(space);
}

void fsd_space_grow(struct fsd_space *space)
{
	(void)take_chunk(space);
}

int fsd_space_reserve(struct fsd_space *space, uint64_t bytes)
{
	uint64_t room, wanted;

	if (bytes <= space->free)
		return 0;
	room = fsd_space_room(space);
	if (bytes > room)
		return bytes - room > space->limbo ? -ENOSPC : -EINPROGRESS;
	wanted = bytes - space->free;
	fsd_space_clean(space, wanted < CLEAN_BYTES_MAX ? wanted : CLEAN_BYTES_MAX);
	if (bytes > space->free && !space->dirty && take_chunk(space))
		return -ENOSPC;
	return bytes > space->free ? -EINPROGRESS : 0;
}

bool fsd_space_claim(struct fsd_space *space, uint64_t from, uint64_t volume, uint64_t bytes)
{
	uint64_t run = from / FS_BLOCK, at = volume / FS_BLOCK, count = bytes / FS_BLOCK;

	if (from % FS_BLOCK || volume % FS_BLOCK || bytes % FS_BLOCK || !count || at < run ||
	    volume >= space->total || count > space->total / FS_BLOCK - at ||
	    tag(space, (uint32_t)run)->length < at - run + count)
		return false;
	claim_blocks(space, (uint32_t)run, (uint32_t)at, (uint32_t)count);
	return true;
}

void *fsd_space_memory(const struct fsd_space *space, uint64_t volume)
{
	return space->chunk[volume / space->chunk_bytes].memory + volume % space->chunk_bytes;
}
