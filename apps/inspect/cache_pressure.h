/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a session's small writes ask of the donor's NIC: how far its translation cache would reach.
 */
#ifndef WEIR_APPS_INSPECT_CACHE_PRESSURE_H
#define WEIR_APPS_INSPECT_CACHE_PRESSURE_H

#include "apps/common/json.h"
#include "apps/inspect/stats_view.h"

/**
 * struct cache_pressure - of one session, lately
 * @entries: of the cache that is asked about; 0: the session does not count
 * @pages, @huge_pages: written, of 4 KiB and of 2 MiB
 * @hits, @huge_hits: of the writes, the part that a cache would find that keeps the pages written
 *	most
 */
struct cache_pressure {
	uint64_t entries;
	uint64_t pages, huge_pages;
	double hits, huge_hits;
};

/* @entries: of the cache; 0: as many as the session was told that there are. */
struct cache_pressure cache_pressure_of(const struct weir_stats_shm_page_heat *counted,
					uint64_t entries);

/**
 * cache_pressure_entries() - how many entries a NIC's translation cache has
 * @text: a number, or the name of a profile of weir lab
 *
 * Return: 0; -EINVAL it is neither.
 */
int cache_pressure_entries(const char *text, uint64_t *entries);

void cache_pressure_print(const struct cache_pressure *p, const struct weir_counters *counters);

/* The member "pressure" of an open object. */
void cache_pressure_json(const struct cache_pressure *p, const struct weir_counters *counters,
			 struct json *json);

#endif
