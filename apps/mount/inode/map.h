/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a client knows of where a file's bytes lie: the extents that the donor told it.
 *
 * What lies between two of them is a hole or merely unknown. One range, the *known* one, is
 * remembered as having been answered completely: gaps in it were holes then. As long as the
 * client is alone they still are.
 *
 * Pure, but that it allocates; guarded by the inode's lock.
 */
#ifndef WEIR_APPS_MOUNT_INODE_MAP_H
#define WEIR_APPS_MOUNT_INODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/fs.h"

struct map { /* all zero: nothing is known */
	struct wire_fs_extent *extent; /* in order of offset; no two overlap */
	uint32_t nr, room;
	uint64_t known, known_end;
};

/* Enough for 4 GiB in shreds of 64 KiB; a map that grows beyond is forgotten and asked anew. */
#define MAP_EXTENTS_MAX 65536u

/**
 * map_makes_sense() - check an answer of the donor's: it is not trusted
 * @reply, @length: a wire_fs_map, and what follows it
 * @at: what was asked for begins there
 * @map: receives the wire_fs_map
 *
 * Return: true if the answer goes beyond @at, and its extents lie on blocks and in order.
 */
bool map_makes_sense(const void *reply, size_t length, uint64_t at, struct wire_fs_map *map);

/**
 * map_learn() - put an answer of the donor's in
 * @offset, @end: what it is complete for
 * @extent, @nr: extents that touch it, in order, checked; may be unaligned
 *
 * Return: 0; -ENOMEM, having forgotten everything.
 */
int map_learn(struct map *map, uint64_t offset, uint64_t end, const void *extent, uint32_t nr);

/**
 * map_find() - what is at @offset
 * @volume: receives its place in the volume if it is in an extent
 * @length: receives how far this extent, or this gap, goes on; UINT64_MAX - @offset at most
 *
 * Return: true if @offset is in an extent.
 */
bool map_find(const struct map *map, uint64_t offset, uint64_t *volume, uint64_t *length);

/* Were gaps here holes when the donor last answered? @length, at least 1, is cut to where so. */
bool map_is_known(const struct map *map, uint64_t offset, uint64_t *length);

void map_forget(struct map *map);

#endif
