/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A tree of two levels: an array of leaves, each a small sorted array. Most files have a single
 * leaf with a single extent. A file of a million extents has about ten thousand leaves, and an
 * insertion moves at most a leaf's extents.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fsd/data/map.h"

#define LEAF_MAX 128

struct fsd_leaf {
	uint32_t nr, room;
	struct wire_fs_extent extent[];
};

static uint64_t extent_end(const struct wire_fs_extent *e)
{
	return e->offset + e->length;
}

static uint64_t leaf_end(const struct fsd_leaf *leaf)
{
	return extent_end(&leaf->extent[leaf->nr - 1]);
}

struct fsd_map_cursor fsd_map_seek(const struct fsd_map *map, uint64_t offset)
{
	struct fsd_map_cursor place = { .map = map };
	uint32_t low = 0, high = map->nr;
	const struct fsd_leaf *leaf;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (leaf_end(map->leaf[mid]) <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	place.leaf = low;
	if (low == map->nr)
		return place;
	leaf = map->leaf[low];
	for (low = 0, high = leaf->nr; low < high;) {
		uint32_t mid = low + (high - low) / 2;

		if (extent_end(&leaf->extent[mid]) <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	place.slot = low;
	return place;
}

const struct wire_fs_extent *fsd_map_at(const struct fsd_map_cursor *place)
{
	if (place->leaf >= place->map->nr)
		return NULL;
	return &place->map->leaf[place->leaf]->extent[place->slot];
}

void fsd_map_step(struct fsd_map_cursor *place)
{
	if (++place->slot < place->map->leaf[place->leaf]->nr)
		return;
	place->leaf++;
	place->slot = 0;
}

/* Makes room for @nr more leaves in the array. */
static int map_reserve(struct fsd_map *map, uint32_t nr)
{
	uint32_t room = map->room ? map->room : 1;
	struct fsd_leaf **leaf;

	while (room < map->nr + nr)
		room *= 2;
	if (room == map->room)
		return 0;
	leaf = realloc(map->leaf, room * sizeof(*leaf));
	if (!leaf)
		return -ENOMEM;
	map->leaf = leaf;
	map->room = room;
	return 0;
}

static struct fsd_leaf *leaf_new(uint32_t room)
{
	struct fsd_leaf *leaf = malloc(sizeof(*leaf) + room * sizeof(leaf->extent[0]));

	if (leaf) {
		leaf->nr = 0;
		leaf->room = room;
	}
	return leaf;
}

/* Inserts a leaf at @index; the array has room. */
static void map_put(struct fsd_map *map, uint32_t index, struct fsd_leaf *leaf)
{
	memmove(&map->leaf[index + 1], &map->leaf[index], (map->nr - index) * sizeof(map->leaf[0]));
	map->leaf[index] = leaf;
	map->nr++;
}

static void map_drop(struct fsd_map *map, uint32_t index)
{
	free(map->leaf[index]);
	map->nr--;
	memmove(&map->leaf[index], &map->leaf[index + 1], (map->nr - index) * sizeof(map->leaf[0]));
}

/* Splits a leaf before @slot. */
static int leaf_split(struct fsd_map *map, uint32_t index, uint32_t slot)
{
	struct fsd_leaf *left = map->leaf[index], *right = leaf_new(LEAF_MAX);

	if (!right || map_reserve(map, 1)) {
		free(right);
		return -ENOMEM;
	}
	right->nr = left->nr - slot;
	memcpy(right->extent, &left->extent[slot], right->nr * sizeof(right->extent[0]));
	left->nr = slot;
	map_put(map, index + 1, right);
	return 0;
}

static int leaf_grow(struct fsd_map *map, uint32_t index)
{
	struct fsd_leaf *leaf = map->leaf[index];
	uint32_t room = leaf->room * 2;

	leaf = realloc(leaf, sizeof(*leaf) + room * sizeof(leaf->extent[0]));
	if (!leaf)
		return -ENOMEM;
	leaf->room = room;
	map->leaf[index] = leaf;
	return 0;
}

/* Makes room for an extent at @place; may create the first leaf or move @place. */
static int make_room(struct fsd_map *map, struct fsd_map_cursor *place)
{
	struct fsd_leaf *leaf;

	if (!map->nr) {
		leaf = leaf_new(1);
		if (!leaf || map_reserve(map, 1)) {
			free(leaf);
			return -ENOMEM;
		}
		map_put(map, 0, leaf);
		return 0;
	}
	if (place->leaf == map->nr) {
		place->leaf--;
		place->slot = map->leaf[place->leaf]->nr;
	}
	leaf = map->leaf[place->leaf];
	if (leaf->nr < leaf->room)
		return 0;
	if (leaf->room < LEAF_MAX)
		return leaf_grow(map, place->leaf);
	/* Appending leaves full leaves behind; an insertion elsewhere splits in half. */
	if (leaf_split(map, place->leaf, place->slot == LEAF_MAX ? LEAF_MAX - 1 : LEAF_MAX / 2))
		return -ENOMEM;
	if (place->slot > leaf->nr) {
		place->slot -= leaf->nr;
		place->leaf++;
	}
	return 0;
}

static int insert_at(struct fsd_map *map, struct fsd_map_cursor place,
		     const struct wire_fs_extent *extent)
{
	struct fsd_leaf *leaf;

	if (make_room(map, &place))
		return -ENOMEM;
	leaf = map->leaf[place.leaf];
	memmove(&leaf->extent[place.slot + 1], &leaf->extent[place.slot],
		(leaf->nr - place.slot) * sizeof(*extent));
	leaf->extent[place.slot] = *extent;
	leaf->nr++;
	return 0;
}

static struct wire_fs_extent *before(const struct fsd_map_cursor *place)
{
	const struct fsd_map *map = place->map;

	if (place->slot)
		return &map->leaf[place->leaf]->extent[place->slot - 1];
	if (place->leaf)
		return &map->leaf[place->leaf - 1]->extent[map->leaf[place->leaf - 1]->nr - 1];
	return NULL;
}

static bool joins(const struct wire_fs_extent *a, const struct wire_fs_extent *b,
		  uint64_t chunk_bytes)
{
	return a && b && extent_end(a) == b->offset && a->volume + a->length == b->volume &&
	       b->volume % chunk_bytes;
}

static void remove_at(struct fsd_map *map, const struct fsd_map_cursor *place)
{
	struct fsd_leaf *leaf = map->leaf[place->leaf];

	leaf->nr--;
	memmove(&leaf->extent[place->slot], &leaf->extent[place->slot + 1],
		(leaf->nr - place->slot) * sizeof(leaf->extent[0]));
	if (!leaf->nr)
		map_drop(map, place->leaf);
}

int fsd_map_insert(struct fsd_map *map, const struct wire_fs_extent *extent, uint64_t chunk_bytes)
{
	struct fsd_map_cursor place = fsd_map_seek(map, extent->offset);
	struct wire_fs_extent *left = before(&place);
	struct wire_fs_extent *right = (struct wire_fs_extent *)fsd_map_at(&place);
	bool right_joins = joins(extent, right, chunk_bytes);

	if (joins(left, extent, chunk_bytes)) {
		left->length += extent->length;
		if (right_joins) {
			left->length += right->length;
			remove_at(map, &place);
		}
	} else if (right_joins) {
		right->offset = extent->offset;
		right->volume = extent->volume;
		right->length += extent->length;
	} else if (insert_at(map, place, extent)) {
		return -ENOMEM;
	}
	map->bytes += extent->length;
	return 0;
}

/* Splits the extent that crosses @offset, if any. */
static int cut_at(struct fsd_map *map, uint64_t offset)
{
	struct fsd_map_cursor place = fsd_map_seek(map, offset);
	const struct wire_fs_extent *at = fsd_map_at(&place);
	struct wire_fs_extent right;
	uint64_t left_length;

	if (!at || at->offset >= offset)
		return 0;
	left_length = offset - at->offset;
	right = (struct wire_fs_extent){ offset, at->volume + left_length,
					 at->length - left_length };
	place.slot++;
	if (insert_at(map, place, &right))
		return -ENOMEM;
	place = fsd_map_seek(map, offset - 1);
	map->leaf[place.leaf]->extent[place.slot].length = left_length;
	return 0;
}

/* Splits so that a leaf begins at @offset, and returns the leaf's index. */
static int cut_leaf_at(struct fsd_map *map, uint64_t offset, uint32_t *leaf)
{
	struct fsd_map_cursor place;

	if (cut_at(map, offset))
		return -ENOMEM;
	place = fsd_map_seek(map, offset);
	if (place.slot) {
		if (leaf_split(map, place.leaf, place.slot))
			return -ENOMEM;
		place.leaf++;
	}
	*leaf = place.leaf;
	return 0;
}

/* Joins two small leaves that carving has made adjacent. */
static void join_leaves(struct fsd_map *map, uint32_t index)
{
	struct fsd_leaf *left, *right;

	if (!index || index >= map->nr)
		return;
	left = map->leaf[index - 1];
	right = map->leaf[index];
	if (left->nr + right->nr > left->room)
		return;
	memcpy(&left->extent[left->nr], right->extent, right->nr * sizeof(right->extent[0]));
	left->nr += right->nr;
	map_drop(map, index);
}

static uint64_t leaves_bytes(const struct fsd_map *map)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < map->nr; i++) {
		for (uint32_t j = 0; j < map->leaf[i]->nr; j++)
			bytes += map->leaf[i]->extent[j].length;
	}
	return bytes;
}

int fsd_map_carve(struct fsd_map *map, uint64_t start, uint64_t end, struct fsd_map *out)
{
	uint32_t first, last;

	if (start >= end || !map->nr)
		return 0;
	/* Cut at the end first: this does not move what the cut at the start finds. */
	if (cut_leaf_at(map, end, &last) || cut_leaf_at(map, start, &first))
		return -ENOMEM;
	last = fsd_map_seek(map, end).leaf;
	if (first == last)
		return 0;
	if (map_reserve(out, last - first))
		return -ENOMEM;
	out->nr = last - first;
	memcpy(out->leaf, &map->leaf[first], out->nr * sizeof(out->leaf[0]));
	memmove(&map->leaf[first], &map->leaf[last], (map->nr - last) * sizeof(map->leaf[0]));
	map->nr -= out->nr;
	out->bytes = map->nr ? leaves_bytes(out) : map->bytes;
	map->bytes -= out->bytes;
	join_leaves(map, first);
	return 0;
}

bool fsd_map_pop(struct fsd_map *map, uint64_t bytes_max, struct wire_fs_extent *extent)
{
	struct fsd_map_cursor place = { .map = map };
	struct wire_fs_extent *last;

	if (!map->nr)
		return false;
	place.leaf = map->nr - 1;
	place.slot = map->leaf[place.leaf]->nr - 1;
	last = &map->leaf[place.leaf]->extent[place.slot];
	*extent = *last;
	if (extent->length > bytes_max) {
		last->length -= bytes_max;
		extent->offset += last->length;
		extent->volume += last->length;
		extent->length = bytes_max;
	} else {
		remove_at(map, &place);
	}
	map->bytes -= extent->length;
	return true;
}

void fsd_map_fini(struct fsd_map *map)
{
	for (uint32_t i = 0; i < map->nr; i++)
		free(map->leaf[i]);
	free(map->leaf);
	memset(map, 0, sizeof(*map));
}
