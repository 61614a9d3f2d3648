/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Each set keeps its keys in order of use: the last way is the next victim. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/nic/cache.h"

int sim_cache_init(struct sim_cache *cache, uint32_t entries, uint32_t ways)
{
	*cache = (struct sim_cache){ .nr_sets = (entries + ways - 1) / ways, .nr_ways = ways };
	cache->keys = calloc((size_t)cache->nr_sets * ways, sizeof(*cache->keys));
	return cache->keys ? 0 : -ENOMEM;
}

void sim_cache_fini(struct sim_cache *cache)
{
	free(cache->keys);
}

static uint64_t *set_of(const struct sim_cache *cache, uint64_t key)
{
	uint64_t hash = key * 0x9e3779b97f4a7c15ull;

	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93ull;
	return cache->keys + (size_t)((hash >> 32) * cache->nr_sets >> 32) * cache->nr_ways;
}

/* Moves the key at @way to the front; a key that differs from @key falls out. */
static void to_front(uint64_t *set, uint32_t way, uint64_t key)
{
	memmove(set + 1, set, way * sizeof(*set));
	set[0] = key;
}

static bool find_or_insert(struct sim_cache *cache, uint64_t key)
{
	uint64_t *set = set_of(cache, ++key);
	uint32_t way;

	for (way = 0; way < cache->nr_ways - 1 && set[way] && set[way] != key; way++)
		;
	if (set[way] == key) {
		to_front(set, way, key);
		return true;
	}
	to_front(set, way, key);
	return false;
}

bool sim_cache_look(struct sim_cache *cache, uint64_t key)
{
	bool hit = find_or_insert(cache, key);

	cache->hits += hit;
	cache->misses += !hit;
	return hit;
}

void sim_cache_put(struct sim_cache *cache, uint64_t key)
{
	find_or_insert(cache, key);
}

void sim_cache_drop(struct sim_cache *cache, uint64_t key)
{
	uint64_t *set = set_of(cache, ++key);
	uint32_t way;

	for (way = 0; way < cache->nr_ways && set[way] != key; way++)
		;
	if (way == cache->nr_ways)
		return;
	memmove(set + way, set + way + 1, (cache->nr_ways - way - 1) * sizeof(*set));
	set[cache->nr_ways - 1] = 0;
}
