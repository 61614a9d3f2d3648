/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How often each page was written lately, and which are hot: those that a translation cache with
 * room for so many would know if it kept the ones written most (uRDMA, section 3.2).
 *
 * One counter for each page says how often it was written lately; above the threshold it is hot,
 * and the threshold is the lowest that leaves no more pages hot than there is room for. Both the
 * counters' histogram and the threshold are kept up with each write, and a few counters fade, so that
 * no write ever pays for many; a bit for each line of counters says where there is something to
 * fade. Where there are more pages than counters these are shared, two for each page, of which the
 * lower counts (a sketch).
 *
 * Context of all: any; never sleeps; externally serialised.
 */
#ifndef WEIR_CORE_UNLOAD_PAGE_HEAT_H
#define WEIR_CORE_UNLOAD_PAGE_HEAT_H

#include "core/base/platform.h"

#define WEIR_PAGE_HEAT_COUNTERS_MIN 64
#define WEIR_PAGE_HEAT_COUNTERS_MAX (1u << 24)
#define WEIR_PAGE_HEAT_COUNTS 256 /* that a counter can have */
#define WEIR_PAGE_HEAT_LINE 64 /* counters */
#define WEIR_PAGE_HEAT_LINES 64 /* of which one word says which are empty */
/* Memory for @nr counters, and their lines. */
#define WEIR_PAGE_HEAT_BYTES(nr) \
	((nr) + 8 * (((nr)-1) / (WEIR_PAGE_HEAT_LINE * WEIR_PAGE_HEAT_LINES) + 1))

/**
 * struct weir_page_heat - of one size
 * @counters: the host's, @nr_counters of them
 * @lines: a bit for each line of them that may not be empty
 * @room: pages that may be hot
 * @is_sketch: pages share counters
 * @any: some page was counted; then @first and @last are the lowest and the highest
 * @cursor: what fades next; @ticks: writes since the last did
 * @histogram: counters by their value, those that are 0 not included; of a sketch, of the first row
 * @count: pages that were written lately: what is in @histogram; of a sketch, at least so many were
 * @threshold: from this count on a page is hot, 1 to WEIR_PAGE_HEAT_COUNTS
 * @hot: counters that have reached it
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
 * weir_page_heat_init() - nothing has been written yet
 * @p: to be initialised
 * @counters: *kept*; WEIR_PAGE_HEAT_BYTES(@nr_counters), zeroed, at a multiple of 8
 * @nr_counters: a power of two, WEIR_PAGE_HEAT_COUNTERS_MIN to MAX. With as many as there are pages
 *	between the first and the last nothing is shared
 * @room: pages that may be hot, at least 1
 *
 * Return: 0, or -EINVAL: something out of its range.
 */
int weir_page_heat_init(struct weir_page_heat *p, uint8_t *counters, uint32_t nr_counters,
			uint32_t room);

/* Page number @page is written once. Return: whether it is hot. */
bool weir_page_heat_record_write(struct weir_page_heat *p, uint64_t page);

#endif
