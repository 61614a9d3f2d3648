/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/serve/web/memory_map.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE 4096u

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_holder(const void *one, const void *other)
{
	const struct weir_holding *a = one, *b = other;

	if (a->kind != b->kind)
		return order(a->kind, b->kind);
	return a->tenant != b->tenant ? order(a->tenant, b->tenant) : order(a->client, b->client);
}

/* Of equal ones the earlier client first, so that the table stands still. */
static int by_bytes(const void *one, const void *other)
{
	const struct map_holder *a = one, *b = other;

	return a->bytes != b->bytes ? order(b->bytes, a->bytes) : order(a->first, b->first);
}

static void find_holders(struct memory_map *map, const struct weir_holdings *holdings)
{
	struct map_holder *holder = NULL;

	for (size_t i = 0; i < holdings->nr_extents; i++) {
		const struct weir_holding *extent = &holdings->extent[i];

		if (!holder || by_holder(&holder->of, extent)) {
			holder = &map->holder[map->nr_holders++];
			*holder = (struct map_holder){ .of = *extent, .first = i };
		}
		holder->extents++;
		holder->bytes += extent->bytes;
	}
}

static void paint(struct memory_map *map, uint64_t largest[MAP_CELLS_MAX],
		  const struct weir_holding *extent, int holder)
{
	uint64_t end = extent->offset + extent->bytes;

	for (uint64_t i = extent->offset / map->cell_bytes; i * map->cell_bytes < end; i++) {
		uint64_t from = i * map->cell_bytes, to = from + map->cell_bytes;
		uint64_t inside = (end < to ? end : to) -
				  (extent->offset > from ? extent->offset : from);

		if (inside <= largest[i])
			continue;
		largest[i] = inside;
		map->cell[i] = holder;
	}
}

static void paint_all(struct memory_map *map, const struct weir_holdings *holdings)
{
	uint64_t largest[MAP_CELLS_MAX] = { 0 };
	uint64_t pages = (holdings->bytes + PAGE - 1) / PAGE;

	map->cell_bytes = (pages + MAP_CELLS_MAX - 1) / MAP_CELLS_MAX * PAGE;
	map->nr_cells = (unsigned int)((holdings->bytes + map->cell_bytes - 1) / map->cell_bytes);
	for (unsigned int i = 0; i < map->nr_cells; i++)
		map->cell[i] = -1;
	for (unsigned int i = 0; i < map->nr_holders; i++)
		for (size_t k = 0; k < map->holder[i].extents; k++)
			paint(map, largest, &holdings->extent[map->holder[i].first + k],
			      i < MAP_HOLDERS_MAX ? (int)i : MAP_HOLDERS_MAX);
}

/* Leaves the largest holders, and one for all others. */
static void shorten(struct memory_map *map)
{
	struct map_holder *others = &map->holder[MAP_HOLDERS_MAX];

	if (map->nr_holders <= MAP_HOLDERS_MAX)
		return;
	for (unsigned int i = MAP_HOLDERS_MAX + 1; i < map->nr_holders; i++) {
		others->extents += map->holder[i].extents;
		others->bytes += map->holder[i].bytes;
	}
	map->nr_holders = MAP_HOLDERS_MAX + 1;
	map->has_others = true;
}

int memory_map_make(struct memory_map *map, struct weir_holdings *holdings)
{
	*map = (struct memory_map){
		.holder = calloc(holdings->nr_extents + 1, sizeof(*map->holder)),
	};
	if (!map->holder)
		return -ENOMEM;
	qsort(holdings->extent, holdings->nr_extents, sizeof(*holdings->extent), by_holder);
	find_holders(map, holdings);
	qsort(map->holder, map->nr_holders, sizeof(*map->holder), by_bytes);
	paint_all(map, holdings);
	shorten(map);
	return 0;
}

void memory_map_free(struct memory_map *map)
{
	free(map->holder);
	map->holder = NULL;
}
