/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A cache of a NIC: sets of a few ways, the least recently used of a set goes. Which set is a
 * hash of the key, so that the fall at its size is not a cliff.
 */
#ifndef WEIR_SIM_NIC_CACHE_H
#define WEIR_SIM_NIC_CACHE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct sim_cache - what is in it
 * @keys: of the ways of each set, the one used last first; 0: free
 * @nr_sets, @nr_ways: how it is laid out
 * @hits, @misses: so far
 */
struct sim_cache {
	uint64_t *keys;
	uint32_t nr_sets;
	uint32_t nr_ways;
	uint64_t hits;
	uint64_t misses;
};

/* Empty, with room for @entries, rounded up to whole sets of @ways. Return: 0, or -ENOMEM. */
int sim_cache_init(struct sim_cache *cache, uint32_t entries, uint32_t ways);

/* Frees what it holds. */
void sim_cache_fini(struct sim_cache *cache);

/* Looks up @key, any but UINT64_MAX. Return: whether it was there; now it is. */
bool sim_cache_look(struct sim_cache *cache, uint64_t key);

/* Puts @key in without a look that would count. */
void sim_cache_put(struct sim_cache *cache, uint64_t key);

/* Makes room: @key is wanted no more. */
void sim_cache_drop(struct sim_cache *cache, uint64_t key);

#endif
