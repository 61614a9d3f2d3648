/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/mount/inode/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t extent_end(const struct wire_fs_extent *extent)
{
	return extent->offset + extent->length;
}

/* Index of the first extent that ends after @offset. */
static uint32_t first_after(const struct map *map, uint64_t offset)
{
	uint32_t low = 0, high = map->nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (extent_end(&map->extent[middle]) <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool extents_make_sense(const char *extents, uint32_t nr)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < nr; i++) {
		struct wire_fs_extent e;

		memcpy(&e, extents + i * sizeof(e), sizeof(e));
		if (!e.length || (e.offset | e.volume | e.length) % FS_BLOCK || e.offset < last ||
		    e.length > INT64_MAX || e.offset > INT64_MAX || e.volume > INT64_MAX)
			return false;
		last = extent_end(&e);
	}
	return true;
}

bool map_makes_sense(const void *reply, size_t length, uint64_t at, struct wire_fs_map *map)
{
	if (length < sizeof(*map))
		return false;
	memcpy(map, reply, sizeof(*map));
	return map->extents <= (length - sizeof(*map)) / sizeof(struct wire_fs_extent) &&
	       map->end > at && map->size <= INT64_MAX &&
	       extents_make_sense((const char *)reply + sizeof(*map), map->extents);
}

void map_forget(struct map *map)
{
	free(map->extent);
	*map = (struct map){ 0 };
}

void map_doubt_holes(struct map *map)
{
	map->known = map->known_end = 0;
}

static int make_room(struct map *map)
{
	uint32_t room = map->room ? 2 * map->room : 4;
	struct wire_fs_extent *bigger;

	if (map->nr < map->room)
		return 0;
	bigger = realloc(map->extent, room * sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	map->extent = bigger;
	map->room = room;
	return 0;
}

static bool continues(const struct wire_fs_extent *left, const struct wire_fs_extent *right)
{
	return extent_end(left) == right->offset && left->volume + left->length == right->volume;
}

/*
 * Inserts an extent, merged with its neighbours. Overlapping extents agree, because a map that
 * changed was recalled.
 */
static int insert(struct map *map, struct wire_fs_extent extent)
{
	uint32_t at = first_after(map, extent.offset);
	uint32_t past = at;

	if (at > 0 && continues(&map->extent[at - 1], &extent))
		at--;
	if (at < map->nr && map->extent[at].offset < extent.offset) {
		extent.length = extent_end(&extent) - map->extent[at].offset;
		extent.volume -= extent.offset - map->extent[at].offset;
		extent.offset = map->extent[at].offset;
	}
	while (past < map->nr && (map->extent[past].offset < extent_end(&extent) ||
				  continues(&extent, &map->extent[past]))) {
		if (extent_end(&map->extent[past]) > extent_end(&extent))
			extent.length = extent_end(&map->extent[past]) - extent.offset;
		past++;
	}
	if (past == at) {
		if (make_room(map))
			return -ENOMEM;
		memmove(&map->extent[at + 1], &map->extent[at], (map->nr - at) * sizeof(extent));
		map->nr++;
	} else if (past > at + 1) {
		memmove(&map->extent[at + 1], &map->extent[past],
			(map->nr - past) * sizeof(extent));
		map->nr -= past - at - 1;
	}
	map->extent[at] = extent;
	return 0;
}

static void learn_known(struct map *map, uint64_t offset, uint64_t end)
{
	if (offset > map->known_end || end < map->known) {
		map->known = offset;
		map->known_end = end;
		return;
	}
	if (offset < map->known)
		map->known = offset;
	if (end > map->known_end)
		map->known_end = end;
}

int map_learn(struct map *map, uint64_t offset, uint64_t end, const void *extent, uint32_t nr)
{
	if (nr > MAP_EXTENTS_MAX - map->nr)
		map_forget(map);
	for (uint32_t i = 0; i < nr; i++) {
		struct wire_fs_extent one;

		memcpy(&one, (const char *)extent + i * sizeof(one), sizeof(one));
		if (insert(map, one)) {
			map_forget(map);
			return -ENOMEM;
		}
	}
	learn_known(map, offset, end);
	return 0;
}

bool map_find(const struct map *map, uint64_t offset, uint64_t *volume, uint64_t *length)
{
	uint32_t at = first_after(map, offset);

	if (at == map->nr) {
		*length = UINT64_MAX - offset;
		return false;
	}
	if (map->extent[at].offset > offset) {
		*length = map->extent[at].offset - offset;
		return false;
	}
	*volume = map->extent[at].volume + (offset - map->extent[at].offset);
	*length = extent_end(&map->extent[at]) - offset;
	return true;
}

bool map_is_known(const struct map *map, uint64_t offset, uint64_t *length)
{
	if (offset < map->known || offset >= map->known_end)
		return false;
	if (*length > map->known_end - offset)
		*length = map->known_end - offset;
	return true;
}
