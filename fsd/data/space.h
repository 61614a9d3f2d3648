/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The volume's space: chunks taken from the host as files grow, and the extents in them.
 *
 * A block is free (zeroed, may be taken), dirty (freed, to be zeroed) or in use. An extent never
 * crosses the border of a chunk, because each chunk is a region of its own.
 */
#ifndef WEIR_FSD_DATA_SPACE_H
#define WEIR_FSD_DATA_SPACE_H

#include <sys/queue.h>

#include "fsd/fsd.h"
#include "fsd/data/map.h"

struct fsd_chunk {
	struct wire_fs_chunk wire;
	uint8_t *memory;
	struct fsd_tag *tag;
};

/* A map on its way back to the space. */
struct fsd_freed {
	TAILQ_ENTRY(fsd_freed) entry;
	struct fsd_map map;
	uint64_t epoch; /* in limbo: who holds a map up to this epoch may still write there */
};

TAILQ_HEAD(fsd_freed_list, fsd_freed);

struct fsd_space {
	const struct fsd_host *host;
	uint64_t bytes_max;
	uint64_t chunk_bytes;
	struct fsd_chunk *chunk;
	uint32_t nr_chunks;
	uint64_t total; /* bytes of all chunks */
	uint64_t free; /* bytes */
	uint64_t dirty;
	uint64_t limbo; /* counted here, kept by the inodes */
	bool stuck; /* the host had no chunk, though it has room: ask again only if we must */
	uint32_t classes; /* bit i: a free run of 2^i .. 2^(i+1)-1 blocks exists */
	uint32_t head[32]; /* block + 1, or 0 */
	struct fsd_freed_list dirty_list;
};

void fsd_space_init(struct fsd_space *space, const struct fsd_host *host, uint64_t bytes_max,
		    uint64_t chunk_bytes);
void fsd_space_fini(struct fsd_space *space);

/**
 * fsd_space_reserve() - see to it that so much is free
 * @bytes: a multiple of FS_BLOCK
 *
 * Zeroes dirty memory and takes chunks as needed, but not too much of that at once.
 * Return: 0: as many fsd_space_take() will not fail; -ENOSPC; -EINPROGRESS: try again soon, it
 * will take more time, or extents in limbo.
 */
int fsd_space_reserve(struct fsd_space *space, uint64_t bytes);

/**
 * fsd_space_take() - a free extent
 * @before: the extent of the file that it follows, so that both lie in one piece; or NULL
 * @bytes: wanted, a multiple of FS_BLOCK
 * @volume: receives where it begins; it is all zeroes
 *
 * Return: its length, at most @bytes, often less; 0: nothing is free.
 */
uint64_t fsd_space_take(struct fsd_space *space, const struct wire_fs_extent *before,
			uint64_t bytes, uint64_t *volume);

/* An extent that nobody wrote to goes back. */
void fsd_space_give(struct fsd_space *space, uint64_t volume, uint64_t bytes);

/* The extents of a map go back, to be zeroed first. @freed is given. */
void fsd_space_give_dirty(struct fsd_space *space, struct fsd_freed *freed);

/* Zeroes at most @bytes_max of what is dirty. */
void fsd_space_clean(struct fsd_space *space, uint64_t bytes_max);

/* Is less than half a chunk free, and could there be more? */
bool fsd_space_is_short(const struct fsd_space *space);
/* Takes a chunk, if there is one. */
void fsd_space_grow(struct fsd_space *space);

/* What could still be had: free, dirty, or not yet taken from the host. Bytes. */
uint64_t fsd_space_room(const struct fsd_space *space);

/* Where a place of the volume lies in memory. */
void *fsd_space_memory(const struct fsd_space *space, uint64_t volume);

#endif
