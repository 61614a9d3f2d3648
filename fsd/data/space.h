/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The volume's space: chunks taken from the host as files grow, and the extents in them.
 *
 * A block is free (zeroed), dirty (freed, not zeroed yet) or in use. An extent never crosses a
 * chunk's border, because each chunk is a region of its own.
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
	uint64_t epoch; /* in limbo: clients with a map up to this epoch may still write there */
	uint64_t size; /* of the file after the truncation that cut this off, else UINT64_MAX */
};

TAILQ_HEAD(fsd_freed_list, fsd_freed);

struct fsd_space {
	const struct fsd_host *host;
	uint64_t bytes_max;
	uint64_t chunk_bytes;
	struct fsd_chunk *chunk;
	uint32_t nr_chunks;
	uint64_t total; /* bytes of all chunks */
	uint64_t free; /* bytes, ready to take */
	uint64_t dirty;
	uint64_t limbo; /* counted here; the extents are listed in the inodes */
	bool stuck; /* the host refused a chunk though it has room: ask again only if necessary */
	uint32_t classes; /* bit i: there is a free run of 2^i .. 2^(i+1)-1 blocks */
	uint32_t head[32]; /* block + 1, or 0 */
	struct fsd_freed_list dirty_list;
};

void fsd_space_init(struct fsd_space *space, const struct fsd_host *host, uint64_t bytes_max,
		    uint64_t chunk_bytes);
void fsd_space_fini(struct fsd_space *space);

/**
 * fsd_space_reserve() - make bytes available
 * @bytes: a multiple of FS_BLOCK
 *
 * Zeroes dirty memory and takes chunks as needed, limited per call.
 *
 * Return: 0 (fsd_space_take() can supply @bytes); -ENOSPC; -EINPROGRESS more zeroing is needed, or
 * extents in limbo: try again soon.
 */
int fsd_space_reserve(struct fsd_space *space, uint64_t bytes);

/**
 * fsd_space_take() - take a free extent
 * @before: the preceding extent of the file, so that both can be contiguous; or NULL
 * @bytes: wanted, a multiple of FS_BLOCK
 * @volume: receives the extent's start; its bytes are zero
 *
 * Return: the extent's length, at most @bytes, often less; 0 if nothing is free.
 */
uint64_t fsd_space_take(struct fsd_space *space, const struct wire_fs_extent *before,
			uint64_t bytes, uint64_t *volume);

/*
 * Takes an extent at a given place. @from: start of the free run around the extent. All extents
 * must lie in a single chunk. Return: false if the run does not contain the extent: nothing has
 * changed.
 */
bool fsd_space_claim(struct fsd_space *space, uint64_t from, uint64_t volume, uint64_t bytes);

/* Returns an extent that no client has written. */
void fsd_space_give(struct fsd_space *space, uint64_t volume, uint64_t bytes);

/* Returns a map's extents, to be zeroed first. @freed is given. */
void fsd_space_give_dirty(struct fsd_space *space, struct fsd_freed *freed);

/* Zeroes at most @bytes_max of dirty memory. */
void fsd_space_clean(struct fsd_space *space, uint64_t bytes_max);

/* Whether less than half a chunk is available and the volume can grow. */
bool fsd_space_is_short(const struct fsd_space *space);
/* Takes a chunk from the host if possible. */
void fsd_space_grow(struct fsd_space *space);

/* Bytes still available: free, dirty, or not yet taken from the host. */
uint64_t fsd_space_room(const struct fsd_space *space);

/* The memory at a place in the volume. */
void *fsd_space_memory(const struct fsd_space *space, uint64_t volume);

#endif
