/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Estimates how well the translation cache of the donor's NIC serves a session's small writes. */
#ifndef WEIR_APPS_INSPECT_CACHE_PRESSURE_H
#define WEIR_APPS_INSPECT_CACHE_PRESSURE_H

#include "apps/common/json.h"
#include "apps/inspect/stats_view.h"

/**
 * struct cache_pressure - estimate for a session's recent small writes
 * @entries: size of the assumed cache; 0: the session does not count
 * @pages: 4 KiB pages written
 * @huge_pages: 2 MiB pages written
 * @hits: fraction of writes that hit a cache of the hottest 4 KiB pages
 * @huge_hits: the same for 2 MiB pages
 */
struct cache_pressure {
	uint64_t entries;
	uint64_t pages, huge_pages;
	double hits, huge_hits;
};

/* @entries: size of the cache; 0: as the session was configured. */
struct cache_pressure cache_pressure_of(const struct weir_stats_shm_page_heat *counted,
					uint64_t entries);

/**
 * cache_pressure_entries() - parse the size of a NIC's translation cache
 * @text: a number, or the name of a weir lab profile
 * @entries: receives the number of entries
 *
 * Return: 0, or -EINVAL if @text is neither.
 */
int cache_pressure_entries(const char *text, uint64_t *entries);

void cache_pressure_print(const struct cache_pressure *p, const struct weir_counters *counters);

/* Writes the member "pressure" into an open object. */
void cache_pressure_json(const struct cache_pressure *p, const struct weir_counters *counters,
			 struct json *json);

#endif
