/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Map from file offsets to places in the volume: a file's extents, ordered by offset.
 *
 * A map owns its extents. Callers take extents from the space before inserting them, and return
 * extents to the space after carving or popping them.
 */
#ifndef WEIR_FSD_DATA_MAP_H
#define WEIR_FSD_DATA_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/fs.h"

struct fsd_leaf;

struct fsd_map { /* all zero: an empty map */
	struct fsd_leaf **leaf;
	uint32_t nr, room;
	uint64_t bytes;
};

/* A position in a map; invalid after any change of the map. */
struct fsd_map_cursor {
	const struct fsd_map *map;
	uint32_t leaf, slot;
};

/* Returns the position of the first extent that ends after @offset. */
struct fsd_map_cursor fsd_map_seek(const struct fsd_map *map, uint64_t offset);
/* The extent at a position, or NULL at the end. */
const struct wire_fs_extent *fsd_map_at(const struct fsd_map_cursor *place);
void fsd_map_step(struct fsd_map_cursor *place);

/**
 * fsd_map_insert() - add an extent in a hole
 * @chunk_bytes: adjacent extents are merged, but never across a multiple of this
 *
 * Return: 0; -ENOMEM (nothing changed).
 */
int fsd_map_insert(struct fsd_map *map, const struct wire_fs_extent *extent, uint64_t chunk_bytes);

/**
 * fsd_map_carve() - move the extents of a range to another map
 * @start: first byte, a multiple of FS_BLOCK
 * @end: byte after the last, a multiple of FS_BLOCK
 * @out: an empty map; receives the extents
 *
 * Moves whole leaves, so carving all of a huge file is cheap.
 *
 * Return: 0; -ENOMEM (no extent moved, but some may be split).
 */
int fsd_map_carve(struct fsd_map *map, uint64_t start, uint64_t end, struct fsd_map *out);

/* Removes at most @bytes_max from the end. Returns false if the map is empty. */
bool fsd_map_pop(struct fsd_map *map, uint64_t bytes_max, struct wire_fs_extent *extent);

void fsd_map_fini(struct fsd_map *map);

#endif
