/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <inttypes.h>
#include <stdint.h>

#include "core/unload/path.h"
#include "preload/unload/hooks/fork.h"
#include "preload/unload/pressure.h"
#include "preload/unload/diag.h"

/**
 * struct page_sums - of pages of one size
 * @pages: pages written lately
 * @writes: writes to @pages; @hits: hits of a cache that keeps the most written pages
 */
struct page_sums {
	uint64_t pages;
	uint64_t writes;
	uint64_t hits;
};

static struct {
	uint64_t decided;
	uint64_t hot;
	uint32_t entries;
	struct page_sums small, huge;
} all;

static void page_sums_add(struct page_sums *found, const struct weir_page_heat *pages,
			  uint32_t entries)
{
	uint32_t i, count, kept;

	for (i = WEIR_PAGE_HEAT_COUNTS - 1; i > 0; i--) {
		count = pages->histogram[i];
		kept = count < entries ? count : entries;
		entries -= kept;
		found->pages += count;
		found->writes += (uint64_t)count * i;
		found->hits += (uint64_t)kept * i;
	}
}

void pressure_add(const struct weir_path_selector *route)
{
	if (!weir_path_policy_counts(route->config.policy))
		return;
	all.entries = route->config.hot_pages;
	all.decided += route->decided;
	all.hot += route->hot;
	page_sums_add(&all.small, &route->pages, all.entries);
	page_sums_add(&all.huge, &route->huge, all.entries);
}

static double percent(uint64_t some, uint64_t of)
{
	return of ? 100.0 * (double)some / (double)of : 0;
}

void pressure_report(void)
{
	if (!all.decided)
		return;
	diag_log("of %" PRIu64
		 " small writes that could go either way, %.1f %% to hot pages; lately %" PRIu64
		 " pages of 4 KiB, or %" PRIu64 " of 2 MiB: a cache of %" PRIu32
		 " entries would hit %.1f %%, in huge pages %.1f %%",
		 all.decided, percent(all.hot, all.decided), all.small.pages, all.huge.pages,
		 all.entries, percent(all.small.hits, all.small.writes),
		 percent(all.huge.hits, all.huge.writes));
}

void pressure_forget(void)
{
	all = (__typeof__(all)){ 0 };
}
