/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fsd/data/transfer.h"

#include <errno.h>

#include "fsd/data/file.h"
#include "fsd/inode.h"

/* Where the bytes of a transfer are: @place has the byte at @offset of the file. */
struct window {
	enum fsd_data_kind kind;
	uint64_t offset, place;
};

static int check_transfer(const struct wire_fs_transfer *t)
{
	if (!t->length || t->length > FS_TRANSFER_MAX ||
	    t->place % FS_BLOCK != t->offset % FS_BLOCK)
		return -EINVAL;
	return t->offset > FSD_FILE_MAX - FS_TRANSFER_MAX ? -EFBIG : 0;
}

/* @start, @end: of the bytes to move; the rest of the extents' blocks is zeroes. */
static void move(struct fsd *fsd, const struct window *window, uint64_t from, uint64_t to,
		 uint64_t volume, uint64_t start, uint64_t end)
{
	const struct fsd_data piece = {
		.kind = window->kind,
		.call = fsd->call,
		.volume = volume,
		.place = window->place + (from - window->offset),
		.length = to - from,
		.before = start > from ? (uint32_t)(start - from) : 0,
		.after = to > end ? (uint32_t)(to - end) : 0,
	};

	fsd->host.data(fsd->host.arg, &piece);
}

static void read_hole(struct fsd *fsd, const struct window *window, uint64_t from, uint64_t to)
{
	const struct window hole = { FSD_DATA_HOLE, window->offset, window->place };

	if (from < to)
		move(fsd, &hole, from, to, 0, from, to);
}

int fsd_transfer_read(struct fsd *fsd, struct fsd_inode *inode,
		      const struct wire_fs_transfer *t, uint64_t *length)
{
	const struct window window = { FSD_DATA_READ, t->offset, t->place };
	struct fsd_map_cursor place = fsd_map_seek(&inode->map, t->offset);
	uint64_t at = t->offset, end = t->offset + t->length;
	const struct wire_fs_extent *e;
	int rc = check_transfer(t);

	if (rc)
		return rc;
	if (end > inode->size)
		end = inode->size;
	*length = end > at ? end - at : 0;
	for (; (e = fsd_map_at(&place)) && e->offset < end && at < end; fsd_map_step(&place)) {
		uint64_t from = e->offset > at ? e->offset : at;
		uint64_t to = e->offset + e->length < end ? e->offset + e->length : end;

		read_hole(fsd, &window, at, from);
		move(fsd, &window, from, to, e->volume + (from - e->offset), from, to);
		at = to;
	}
	read_hole(fsd, &window, at, end);
	return 0;
}

int fsd_transfer_write(struct fsd *fsd, struct fsd_inode *inode,
		       const struct wire_fs_transfer *t)
{
	/* The window begins with the block. */
	uint64_t head = t->offset % FS_BLOCK, start = t->offset, end = start + t->length;
	const struct window window = { FSD_DATA_WRITE, start - head, t->place - head };
	uint64_t from = start, to = end;
	struct fsd_map_cursor place;
	const struct wire_fs_extent *e;
	int rc = check_transfer(t);

	if (rc)
		return rc;
	if (fsd_file_is_hole(inode, start))
		from = start - head;
	if (fsd_file_is_hole(inode, end - 1))
		to = (end + FS_BLOCK - 1) / FS_BLOCK * FS_BLOCK;
	rc = fsd_file_fill_raw(fsd, inode, start, t->length);
	if (rc)
		return rc;
	fsd_file_grow(fsd, inode, start); /* zeroes the gap */
	for (place = fsd_map_seek(&inode->map, from);
	     (e = fsd_map_at(&place)) && e->offset < to; fsd_map_step(&place)) {
		uint64_t first = e->offset > from ? e->offset : from;
		uint64_t last = e->offset + e->length < to ? e->offset + e->length : to;

		move(fsd, &window, first, last, e->volume + (first - e->offset), start, end);
	}
	if (end > inode->size)
		inode->size = end;
	fsd_inode_changed(fsd, inode);
	return 0;
}
