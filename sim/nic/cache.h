/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A cache of a NIC: sets of a few ways, least recently used replacement. A hash of the key chooses
 * the set, so that the hit rate falls gradually near the cache's size.
 */
#ifndef WEIR_SIM_NIC_CACHE_H
#define WEIR_SIM_NIC_CACHE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct sim_cache - a cache
 * @keys: ways of each set, most recently used first; 0: free
 * @nr_sets, @nr_ways: layout
 * @hits, @misses: counts so far
 */
struct sim_cache {
	uint64_t *keys;
	uint32_t nr_sets;
	uint32_t nr_ways;
	uint64_t hits;
	uint64_t misses;
};

/* An empty cache of @entries, rounded up to whole sets of @ways. Return: 0, or -ENOMEM. */
int sim_cache_init(struct sim_cache *cache, uint32_t entries, uint32_t ways);

/* Frees the keys. */
void sim_cache_fini(struct sim_cache *cache);

/* Looks up @key (any but UINT64_MAX) and inserts it. Return: whether it was a hit. */
bool sim_cache_look(struct sim_cache *cache, uint64_t key);

/* Inserts @key without counting a hit or miss. */
void sim_cache_put(struct sim_cache *cache, uint64_t key);

/* Removes @key. */
void sim_cache_drop(struct sim_cache *cache, uint64_t key);

#endif
