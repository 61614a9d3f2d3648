/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <inttypes.h>
#include <stdint.h>

#include "core/unload/path.h"
#include "preload/unload/hooks/fork.h"
#include "preload/unload/pressure.h"
#include "preload/unload/diag.h"

static struct {
	uint64_t decided;
	uint64_t hot;
	uint32_t entries;
	struct weir_page_heat_reach small, huge;
} all;

/* Each queue pair has a cache of its own. */
static void reach_add(struct weir_page_heat_reach *reach, const struct weir_page_heat *pages)
{
	uint32_t i;

	reach->entries = all.entries;
	for (i = WEIR_PAGE_HEAT_COUNTS - 1; i > 0; i--)
		weir_page_heat_reach_add(reach, i, pages->histogram[i]);
}

void pressure_add(const struct weir_path_selector *route)
{
	if (!weir_path_policy_counts(route->config.policy))
		return;
	all.entries = route->config.hot_pages;
	all.decided += route->decided;
	all.hot += route->hot;
	reach_add(&all.small, &route->pages);
	reach_add(&all.huge, &route->huge);
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
