/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a file's bytes lie in the volume: its extents, in order of their offset in the file.
 *
 * A map owns its extents: they are taken from the space before they are inserted, and given back
 * by whoever carves or pops them out.
 */
#ifndef WEIR_FSD_DATA_MAP_H
#define WEIR_FSD_DATA_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/fs.h"

struct fsd_leaf;

struct fsd_map { /* all zero: an empty one */
	struct fsd_leaf **leaf;
	uint32_t nr, room;
	uint64_t bytes;
};

/* A place in a map; any change of the map makes it void. */
struct fsd_map_cursor {
	const struct fsd_map *map;
	uint32_t leaf, slot;
};

/* The first extent that ends after @offset. */
struct fsd_map_cursor fsd_map_seek(const struct fsd_map *map, uint64_t offset);
/* The extent at a place, or NULL at the end. */
const struct wire_fs_extent *fsd_map_at(const struct fsd_map_cursor *place);
void fsd_map_step(struct fsd_map_cursor *place);

/**
 * fsd_map_insert() - add an extent where there is a hole
 * @chunk_bytes: extents that touch become one, but never across a multiple of this
 *
 * Return: 0; -ENOMEM (nothing has changed).
 */
int fsd_map_insert(struct fsd_map *map, const struct wire_fs_extent *extent, uint64_t chunk_bytes);

/**
 * fsd_map_carve() - move the extents of a range to another map
 * @start, @end: bytes, multiples of FS_BLOCK
 * @out: an empty map; receives them
 *
 * Moves whole leaves, not extents; carving all of a huge file is cheap.
 * Return: 0; -ENOMEM (nothing has changed but how extents are cut).
 */
int fsd_map_carve(struct fsd_map *map, uint64_t start, uint64_t end, struct fsd_map *out);

/* Takes at most @bytes_max off the end. False: the map is empty. */
bool fsd_map_pop(struct fsd_map *map, uint64_t bytes_max, struct wire_fs_extent *extent);

void fsd_map_fini(struct fsd_map *map);

#endif
