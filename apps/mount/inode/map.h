/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A client's knowledge of a file's map: the extents that the donor has reported.
 *
 * A gap between extents is either a hole or unknown. For a single range, the *known* range, the
 * donor's replies were complete: gaps there were holes at that time, and still are while the client
 * is alone.
 *
 * No side effects except allocation. The inode's lock guards a map.
 */
#ifndef WEIR_APPS_MOUNT_INODE_MAP_H
#define WEIR_APPS_MOUNT_INODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/fs.h"

struct map { /* all zero: nothing known */
	struct wire_fs_extent *extent; /* ordered by offset, not overlapping */
	uint32_t nr, room;
	uint64_t known, known_end;
};

/* Enough for 4 GiB in extents of 64 KiB. A larger map is dropped and fetched again. */
#define MAP_EXTENTS_MAX 65536u

/**
 * map_makes_sense() - validate a reply of the donor, which is not trusted
 * @reply: a wire_fs_map with its extents
 * @length: bytes of @reply
 * @at: start of the range requested
 * @map: receives the wire_fs_map
 *
 * Return: true if the reply reaches beyond @at and its extents are block-aligned and ordered.
 */
bool map_makes_sense(const void *reply, size_t length, uint64_t at, struct wire_fs_map *map);

/**
 * map_learn() - add a reply of the donor
 * @offset: start of the range that the reply covers
 * @end: end of the range
 * @extent: validated extents in order; may be unaligned in memory
 * @nr: number of extents
 *
 * Return: 0; -ENOMEM, after forgetting everything.
 */
int map_learn(struct map *map, uint64_t offset, uint64_t end, const void *extent, uint32_t nr);

/**
 * map_find() - look up @offset
 * @volume: receives the place in the volume if @offset is in an extent
 * @length: receives the bytes left in this extent or gap; UINT64_MAX - @offset at most
 *
 * Return: true if @offset is in an extent.
 */
bool map_find(const struct map *map, uint64_t offset, uint64_t *volume, uint64_t *length);

/* Whether @offset is in the known range. @length, at least 1, is reduced to that range. */
bool map_is_known(const struct map *map, uint64_t offset, uint64_t *length);

void map_forget(struct map *map);
/* Forgets which ranges are holes: others may have filled them. */
void map_doubt_holes(struct map *map);

#endif
