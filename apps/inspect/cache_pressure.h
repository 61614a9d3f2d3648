/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a session's small writes ask of the donor's NIC: how far its translation cache would reach.
 */
#ifndef WEIR_APPS_INSPECT_CACHE_PRESSURE_H
#define WEIR_APPS_INSPECT_CACHE_PRESSURE_H

#include "apps/common/json.h"
#include "apps/inspect/stats_view.h"

/**
 * struct pressure - of one session, lately
 * @entries: of the cache that is asked about; 0: the session does not count
 * @pages, @huge_pages: written, of 4 KiB and of 2 MiB
 * @hits, @huge_hits: of the writes, the part that a cache would find that keeps the pages written
 *	most
 */
struct pressure {
	uint64_t entries;
	uint64_t pages, huge_pages;
	double hits, huge_hits;
};

/* @entries: of the cache; 0: as many as the session was told that there are. */
struct pressure pressure_of(const struct weir_ledger_pressure *counted, uint64_t entries);

/**
 * pressure_entries() - how many entries a NIC's translation cache has
 * @text: a number, or the name of a profile of weir lab
 *
 * Return: 0; -EINVAL it is neither.
 */
int pressure_entries(const char *text, uint64_t *entries);

void pressure_print(const struct pressure *p, const struct weir_counters *counters);

/* The member "pressure" of an open object. */
void pressure_json(const struct pressure *p, const struct weir_counters *counters,
		   struct json *json);

#endif
