/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/inspect/cache_pressure.h"
#include "apps/common/program.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROFILE_FOLDER "sim/profiles"
#define ENTRIES_MAX (1u << 30)

static double part(uint64_t some, uint64_t all)
{
	return all ? (double)some / (double)all : 0;
}

/* Any process may have written the statistics: sums may wrap and are then meaningless. */
static struct weir_page_heat_reach reach_of(const uint64_t *histogram, uint64_t entries)
{
	struct weir_page_heat_reach reach = { .entries = entries };

	for (uint32_t i = WEIR_PAGE_HEAT_COUNTS - 1; i > 0; i--)
		weir_page_heat_reach_add(&reach, i, histogram[i]);
	return reach;
}

struct cache_pressure cache_pressure_of(const struct weir_stats_shm_page_heat *counted,
					uint64_t entries)
{
	struct cache_pressure p = { .entries = counted->entries };
	struct weir_page_heat_reach small, huge;

	if (!p.entries)
		return p;
	if (entries)
		p.entries = entries;
	small = reach_of(counted->pages, p.entries);
	huge = reach_of(counted->huge, p.entries);
	p.pages = small.pages;
	p.huge_pages = huge.pages;
	p.hits = part(small.hits, small.writes);
	p.huge_hits = part(huge.hits, huge.writes);
	return p;
}

static int entries_in(FILE *profile, uint64_t *entries)
{
	char line[256];
	int found = 0;

	while (!found && fgets(line, sizeof(line), profile))
		found = sscanf(line, "mtt_entries = %" SCNu64, entries) == 1;
	return found ? 0 : -EINVAL;
}

static int entries_of_profile(const char *folder, const char *name, uint64_t *entries)
{
	char path[2 * PATH_MAX];
	FILE *profile;
	int rc;

	snprintf(path, sizeof(path), "%s/" PROFILE_FOLDER "/%s", folder, name);
	profile = fopen(path, "r");
	if (!profile)
		return -EINVAL;
	rc = entries_in(profile, entries);
	fclose(profile);
	return rc;
}

/* Looks for the profile beside this program, then in the installation. */
static int entries_named(const char *name, uint64_t *entries)
{
	char folder[PATH_MAX];

	if (program_folder(folder) && !entries_of_profile(folder, name, entries))
		return 0;
	return entries_of_profile(WEIR_LIBEXECDIR, name, entries);
}

int cache_pressure_entries(const char *text, uint64_t *entries)
{
	char *end;

	*entries = strtoul(text, &end, 10);
	if (end != text && !*end)
		return *entries && *entries <= ENTRIES_MAX ? 0 : -EINVAL;
	return *text && !strchr(text, '/') ? entries_named(text, entries) : -EINVAL;
}

void cache_pressure_print(const struct cache_pressure *p, const struct weir_counters *c)
{
	if (!p->entries) {
		puts("translation: counted only with --unload frequency or measured");
		return;
	}
	printf("translation cache of the donor's NIC, for recent small writes:\n");
	printf("  pages touched  %15" PRIu64 "  of 4 KiB, or %" PRIu64 " of 2 MiB\n", p->pages,
	       p->huge_pages);
	printf("  in the hot set %13.1f %%  of small writes so far\n",
	       100 * part(c->hot, c->small));
	printf("  hit rate       %13.1f %%  estimated for a cache of %" PRIu64 " entries\n",
	       100 * p->hits, p->entries);
	printf("  in huge pages  %13.1f %%  estimated hit rate\n", 100 * p->huge_hits);
	printf("  unloaded       %13.1f %%  of small writes so far\n",
	       100 * part(c->unloaded, c->small));
}

void cache_pressure_json(const struct cache_pressure *p, const struct weir_counters *c,
			 struct json *json)
{
	if (!p->entries)
		return;
	json_open_object(json, "pressure");
	json_uint(json, "pages", p->pages);
	json_uint(json, "huge_pages", p->huge_pages);
	json_double(json, "hot_share", part(c->hot, c->small));
	json_uint(json, "entries", p->entries);
	json_double(json, "hit_rate", p->hits);
	json_double(json, "huge_hit_rate", p->huge_hits);
	json_double(json, "unloaded_share", part(c->unloaded, c->small));
	json_close(json);
}
