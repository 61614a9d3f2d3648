/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/data/file.h"
#include "fsd/handle.h"
#include "fsd/inode.h"

#define AHEAD_MAX 64 /* files that hold blocks which nobody may ever write */
#define AHEAD_SHARE 16 /* such blocks take at most this fraction of the free memory */

static uint64_t block_start(uint64_t offset)
{
	return offset / FS_BLOCK * FS_BLOCK;
}

static uint64_t block_end(uint64_t offset)
{
	return block_start(offset + FS_BLOCK - 1);
}

static int check_range(uint64_t offset, uint64_t length)
{
	if (!length)
		return -EINVAL;
	if (offset > FSD_FILE_MAX || length > FSD_FILE_MAX - offset)
		return -EFBIG;
	return 0;
}

static void zero_volume(struct fsd *fsd, uint64_t volume, uint64_t length)
{
	const struct fsd_data piece = {
		.kind = FSD_DATA_ZERO,
		.call = fsd->call,
		.volume = volume,
		.length = length,
	};

	if (fsd_moves_data(fsd))
		fsd->host.data(fsd->host.arg, &piece);
	else
		memset(fsd_space_memory(&fsd->space, volume), 0, length);
}

/* Zeroes the allocated parts of a range. */
static void zero(struct fsd *fsd, struct fsd_inode *inode, uint64_t start, uint64_t end)
{
	struct fsd_map_cursor place = fsd_map_seek(&inode->map, start);
	const struct wire_fs_extent *e;

	for (; (e = fsd_map_at(&place)) && e->offset < end; fsd_map_step(&place)) {
		uint64_t from = start > e->offset ? start - e->offset : 0;
		uint64_t to = end - e->offset < e->length ? end - e->offset : e->length;

		if (from < to)
			zero_volume(fsd, e->volume + from, to - from);
	}
}

static void end_ahead(struct fsd *fsd, struct fsd_inode *inode)
{
	fsd->nr_ahead -= inode->is_ahead;
	inode->is_ahead = false;
}

/*
 * Frees the extents of a range of whole blocks. @size: the file's size after a truncation, else
 * UINT64_MAX. A truncation within a block frees nothing, but map holders must learn of it.
 */
static int free_range(struct fsd *fsd, struct fsd_inode *inode, uint64_t start, uint64_t end,
		      uint64_t size)
{
	struct fsd_freed *freed;
	int rc;

	end_ahead(fsd, inode);
	if (start >= end || !inode->map.nr)
		return 0;
	freed = calloc(1, sizeof(*freed));
	if (!freed)
		return -ENOMEM;
	rc = fsd_map_carve(&inode->map, start, end, &freed->map);
	if (rc || (!freed->map.nr && size == UINT64_MAX)) {
		fsd_map_fini(&freed->map);
		free(freed);
		return rc;
	}
	freed->size = size;
	fsd_handle_recall(fsd, inode, freed);
	return 0;
}

int fsd_file_resize(struct fsd *fsd, struct fsd_inode *inode, uint64_t size)
{
	int rc;

	if (size > FSD_FILE_MAX)
		return -EFBIG;
	if (size <= inode->size) {
		rc = free_range(fsd, inode, block_end(size), UINT64_MAX, size);
		if (rc)
			return rc;
		if (!fsd_moves_data(fsd))
			zero(fsd, inode, size, block_end(size));
		inode->kept_end = 0;
		inode->size = size;
	}
	fsd_file_grow(fsd, inode, size);
	fsd_inode_changed(fsd, inode);
	return 0;
}

void fsd_file_grow(struct fsd *fsd, struct fsd_inode *inode, uint64_t size)
{
	uint64_t end = block_end(inode->size);

	if (size <= inode->size)
		return;
	end_ahead(fsd, inode);
	if (fsd_moves_data(fsd))
		zero(fsd, inode, inode->size, size < end ? size : end);
	inode->size = size;
}

/* Finds the first hole from @at on. Returns false if there is none before @end. */
static bool next_hole(const struct fsd_map *map, uint64_t at, uint64_t end, uint64_t *hole,
		      uint64_t *length)
{
	struct fsd_map_cursor place = fsd_map_seek(map, at);
	const struct wire_fs_extent *e;

	while ((e = fsd_map_at(&place)) && e->offset <= at) {
		at = e->offset + e->length;
		fsd_map_step(&place);
	}
	if (at >= end)
		return false;
	*hole = at;
	*length = (e && e->offset < end ? e->offset : end) - at;
	return true;
}

static uint64_t hole_bytes(const struct fsd_map *map, uint64_t start, uint64_t end)
{
	uint64_t hole, length, bytes = 0;

	for (; next_hole(map, start, end, &hole, &length); start = hole + length)
		bytes += length;
	return bytes;
}

/* The extent that ends at @offset, or NULL. */
static const struct wire_fs_extent *before(const struct fsd_map *map, uint64_t offset)
{
	struct fsd_map_cursor place;
	const struct wire_fs_extent *e;

	if (!offset)
		return NULL;
	place = fsd_map_seek(map, offset - 1);
	e = fsd_map_at(&place);
	return e && e->offset < offset ? e : NULL;
}

static int fill_hole(struct fsd *fsd, struct fsd_inode *inode, uint64_t offset, uint64_t bytes,
		     bool is_raw)
{
	struct wire_fs_extent e = { .offset = offset };

	while (bytes) {
		e.length = fsd_space_take(&fsd->space, before(&inode->map, e.offset), bytes,
					  &e.volume);
		if (fsd_map_insert(&inode->map, &e, fsd->space.chunk_bytes)) {
			fsd_space_give(&fsd->space, e.volume, e.length);
			return -ENOMEM;
		}
		if (fsd_moves_data(fsd) && !is_raw)
			zero_volume(fsd, e.volume, e.length);
		e.offset += e.length;
		bytes -= e.length;
	}
	return 0;
}

bool fsd_file_is_hole(const struct fsd_inode *inode, uint64_t offset)
{
	uint64_t hole, length;

	return next_hole(&inode->map, offset, offset + 1, &hole, &length);
}

static int fill(struct fsd *fsd, struct fsd_inode *inode, uint64_t offset, uint64_t length,
		bool is_raw)
{
	uint64_t at, end, hole, bytes;
	int rc = check_range(offset, length);

	if (rc)
		return rc;
	at = block_start(offset);
	end = block_end(offset + length);
	rc = fsd_space_reserve(&fsd->space, hole_bytes(&inode->map, at, end));
	for (; !rc && next_hole(&inode->map, at, end, &hole, &bytes); at = hole + bytes)
		rc = fill_hole(fsd, inode, hole, bytes, is_raw);
	return rc;
}

int fsd_file_fill(struct fsd *fsd, struct fsd_inode *inode, uint64_t offset, uint64_t length)
{
	return fill(fsd, inode, offset, length, false);
}

void fsd_file_fill_ahead(struct fsd *fsd, struct fsd_inode *inode)
{
	if (inode->map.nr || fsd->nr_ahead == AHEAD_MAX ||
	    fsd->space.free / AHEAD_SHARE < (fsd->nr_ahead + 1ull) * FS_FIRST_BYTES)
		return;
	inode->is_ahead = !fsd_file_fill(fsd, inode, 0, FS_FIRST_BYTES);
	fsd->nr_ahead += inode->is_ahead;
}

int fsd_file_fill_raw(struct fsd *fsd, struct fsd_inode *inode, uint64_t offset, uint64_t length)
{
	return fill(fsd, inode, offset, length, true);
}

static int punch(struct fsd *fsd, struct fsd_inode *inode, uint64_t start, uint64_t end)
{
	int rc = free_range(fsd, inode, block_end(start), block_start(end), UINT64_MAX);

	if (!rc)
		zero(fsd, inode, start, end); /* the partial blocks at both ends */
	return rc;
}

int fsd_file_fallocate(struct fsd *fsd, struct fsd_inode *inode,
		       const struct wire_fs_fallocate *request)
{
	uint32_t mode = request->mode & ~FALLOC_FL_KEEP_SIZE;
	bool keep_size = request->mode & FALLOC_FL_KEEP_SIZE;
	uint64_t start = request->offset, end = start + request->length;
	int rc = check_range(start, request->length);

	if (rc)
		return rc;
	if (mode == FALLOC_FL_PUNCH_HOLE && keep_size) {
		rc = punch(fsd, inode, start, end);
	} else if (!mode || mode == FALLOC_FL_ZERO_RANGE) {
		rc = fsd_file_fill(fsd, inode, start, request->length);
		if (!rc && mode)
			zero(fsd, inode, start, end);
		if (!rc && end > inode->kept_end)
			inode->kept_end = end;
		if (!rc && !keep_size)
			fsd_file_grow(fsd, inode, end);
	} else {
		return -EOPNOTSUPP;
	}
	if (!rc)
		fsd_inode_changed(fsd, inode);
	return rc;
}

int fsd_file_commit(struct fsd_client *client, struct fsd_inode *inode,
		    const struct wire_fs_setattr *set)
{
	uint64_t size = fsd_handle_size_max(client, inode);
	int rc;

	if (set->size > FSD_FILE_MAX)
		return -EFBIG;
	if (set->mask & FS_SET_SIZE)
		return -EINVAL;
	rc = fsd_inode_set(client->fsd, inode, set);
	if (rc)
		return rc;
	if (set->size < size)
		size = set->size;
	fsd_file_grow(client->fsd, inode, size);
	inode->change++;
	return 0;
}

uint8_t fsd_file_last_byte(const struct fsd *fsd, const struct fsd_inode *inode)
{
	struct fsd_map_cursor place = fsd_map_seek(&inode->map, inode->size - 1);
	const struct wire_fs_extent *e = inode->size ? fsd_map_at(&place) : NULL;
	const uint8_t *memory;

	if (!e || e->offset >= inode->size || fsd_moves_data(fsd))
		return 0;
	memory = fsd_space_memory(&fsd->space, e->volume);
	return memory[inode->size - 1 - e->offset];
}

void fsd_file_trim(struct fsd *fsd, struct fsd_inode *inode)
{
	uint64_t end = inode->size > inode->kept_end ? inode->size : inode->kept_end;

	/* Without memory for this, the blocks stay allocated, which is harmless. */
	(void)free_range(fsd, inode, block_end(end), UINT64_MAX, UINT64_MAX);
}

void fsd_file_free(struct fsd *fsd, struct fsd_inode *inode)
{
	struct fsd_freed *freed;
	struct wire_fs_extent e;

	end_ahead(fsd, inode);
	if (inode->map.nr && (freed = calloc(1, sizeof(*freed)))) {
		freed->map = inode->map;
		fsd_space_give_dirty(&fsd->space, freed);
		return;
	}
	/* No memory for struct fsd_freed: zero immediately. */
	while (fsd_map_pop(&inode->map, UINT64_MAX, &e)) {
		if (!fsd_moves_data(fsd))
			memset(fsd_space_memory(&fsd->space, e.volume), 0, e.length);
		fsd_space_give(&fsd->space, e.volume, e.length);
	}
	fsd_map_fini(&inode->map);
}
