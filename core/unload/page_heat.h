/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Recent write frequency of pages. Hot pages are the most written pages, as many as a translation
 * cache of a given size would hold (uRDMA, section 3.2).
 *
 * Each page has a counter of recent writes and is hot from a threshold on, the lowest at which all
 * hot pages fit the cache. Each write updates the histogram and the threshold, and fades a few
 * counters, so no write is expensive. With more pages than counters, each page shares two counters,
 * and the lower counts (a sketch).
 *
 * Context of all: Any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_UNLOAD_PAGE_HEAT_H
#define WEIR_CORE_UNLOAD_PAGE_HEAT_H

#include "core/base/platform.h"

#define WEIR_PAGE_HEAT_COUNTERS_MIN 64
#define WEIR_PAGE_HEAT_COUNTERS_MAX (1u << 24)
#define WEIR_PAGE_HEAT_COUNTS 256 /* values of a counter */
#define WEIR_PAGE_HEAT_LINE 64 /* counters in a line */
#define WEIR_PAGE_HEAT_LINES 64 /* lines whose bits share a word */
/* Memory for @nr counters and the bits of their lines. */
#define WEIR_PAGE_HEAT_BYTES(nr) \
	((nr) + 8 * (((nr)-1) / (WEIR_PAGE_HEAT_LINE * WEIR_PAGE_HEAT_LINES) + 1))

/**
 * struct weir_page_heat - write frequency of pages of one size
 * @counters: the host's memory, @nr_counters of them
 * @lines: a bit for each line of counters that may not be empty
 * @nr_counters: a power of two
 * @room: pages that may be hot
 * @is_sketch: pages share counters
 * @any: some page was counted; @first and @last are valid
 * @first: lowest page counted
 * @last: highest page counted
 * @cursor: the counter that fades next
 * @ticks: writes since a counter last faded
 * @histogram: counters by value, except 0; for a sketch, of the first row only
 * @count: pages written recently, the sum of @histogram; for a sketch, a lower bound
 * @threshold: a page with this count is hot, 1 to WEIR_PAGE_HEAT_COUNTS
 * @hot: counters at or above @threshold
 */
struct weir_page_heat {
	uint8_t *counters;
	uint64_t *lines;
	uint32_t nr_counters;
	uint32_t room;
	bool is_sketch;
	bool any;
	uint64_t first, last;
	uint64_t cursor;
	uint32_t ticks;
	uint32_t histogram[WEIR_PAGE_HEAT_COUNTS];
	uint32_t count;
	uint32_t threshold;
	uint32_t hot;
};

/**
 * struct weir_page_heat_reach - hits of a cache that keeps the most written pages
 * @entries: pages that the cache has room for besides those counted
 * @pages, @writes: counted pages, and the writes to these
 * @hits: writes to pages in the cache
 */
struct weir_page_heat_reach {
	uint64_t entries;
	uint64_t pages;
	uint64_t writes;
	uint64_t hits;
};

/* Counts @pages pages of @count writes each; for all counts, from the highest down. */
static inline void weir_page_heat_reach_add(struct weir_page_heat_reach *reach, uint32_t count,
					    uint64_t pages)
{
	uint64_t kept = pages < reach->entries ? pages : reach->entries;

	reach->entries -= kept;
	reach->pages += pages;
	reach->writes += pages * count;
	reach->hits += kept * count;
}

/**
 * weir_page_heat_init() - start with no writes
 * @p: to be initialised
 * @counters: *kept*; WEIR_PAGE_HEAT_BYTES(@nr_counters), zeroed, aligned to 8
 * @nr_counters: a power of two, WEIR_PAGE_HEAT_COUNTERS_MIN to MAX. Pages share no counters if the
 *	range of pages is no larger
 * @room: pages that may be hot, at least 1
 *
 * Return: 0, or -EINVAL if an argument is out of its range.
 */
int weir_page_heat_init(struct weir_page_heat *p, uint8_t *counters, uint32_t nr_counters,
			uint32_t room);

/* Counts one write to page number @page. Return: whether the page is hot. */
bool weir_page_heat_record_write(struct weir_page_heat *p, uint64_t page);

#endif
