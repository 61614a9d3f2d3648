/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks a pool: whether its map can be read, why groups lack copies, and the path to donors. */
#include "apps/doctor/check.h"
#include "apps/doctor/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/size.h"
#include "apps/pool/pool.h"
#include "core/pool/map.h"
#include "lib/base/clock.h"
#include "lib/pool/client.h"

#define SLOW_MS 500.0 /* a call of etcd that takes longer costs donors their leases under load */

static bool check_map(struct report *report, struct weir_pool_client *client,
		      struct weir_pool_map *map)
{
	const uint64_t begin_ns = weir_now_ns();
	struct weir_error error = { "" };
	int rc = weir_pool_client_read(client, map, &error);
	double ms = (double)(weir_now_ns() - begin_ns) / 1e6;

	if (rc) {
		report_add(report, "map", VERDICT_FAIL, "%s", error.text);
		report_remedy(report, "until the map is back, open volumes go on, and nothing is "
			      "repaired: look at the service of etcd (etcdctl endpoint status) or "
			      "the map's file, and at the path there");
		return false;
	}
	report_add(report, "map", ms > SLOW_MS ? VERDICT_WARN : VERDICT_OK, "read in %.1f ms", ms);
	if (ms > SLOW_MS)
		report_remedy(report, "etcd's disk or host is slow: donors may lose their leases");
	return true;
}

static void check_leader(struct report *report, const struct weir_pool_map *map)
{
	if (map->leader_stored && map->leader < map->nr_donors) {
		report_add(report, "coordinator", VERDICT_OK, "donor %s",
			   map->donor[map->leader].id);
		return;
	}
	report_add(report, "coordinator", VERDICT_FAIL, "none: nothing is repaired");
	report_remedy(report, "start a donor: weir serve --pool");
}

static void check_donors(struct report *report, const struct weir_pool_map *map)
{
	unsigned int absent = 0;
	char list[256] = "";

	for (uint16_t i = 0; i < map->nr_donors; i++) {
		const char *state = pool_donor_state(map, i);
		size_t length = strlen(list);

		if (!strcmp(state, "up"))
			continue;
		absent++;
		snprintf(list + length, sizeof(list) - length, " %s (%s)", map->donor[i].id, state);
	}
	report_add(report, "donors", absent ? VERDICT_WARN : VERDICT_OK,
		   "%u there, in %u failure domains, with %s; %u not up%s%s",
		   weir_pool_map_count_donors(map), weir_pool_map_count_domains(map),
		   size_format(pool_sum_bytes(map)).text, absent, absent ? ":" : "", list);
	if (absent)
		report_remedy(report, "start these donors again: journalctl -u weir-serve there");
}

/* One after the other: at once they would take the link from each other. */
static void check_paths(struct report *report, const struct weir_pool_map *map,
			const struct far_host *path)
{
	for (uint16_t i = 0; i < map->nr_donors; i++) {
		const struct weir_pool_donor *donor = &map->donor[i];
		char label[WEIR_POOL_NAME_MAX + 8];

		if (!donor->incarnation || !*donor->address)
			continue;
		if (!path->is_quiet)
			report_print_new(report);
		snprintf(label, sizeof(label), "donor %s", donor->id);
		check_donor_path(report, label, donor->address, path);
	}
}

/* The widest group that lacks members; 0: none does. @syncing: groups that are being filled. */
static unsigned int widest_lean(const struct weir_pool_map *map, unsigned int *syncing)
{
	unsigned int widest = 0;

	*syncing = 0;
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		const struct weir_pool_group *group = &map->group[i];

		if (!group->version || weir_pool_group_is_whole(group))
			continue;
		*syncing += weir_pool_group_count(group, WEIR_POOL_SYNCING) > 0;
		if (weir_pool_width(group->scheme) > widest)
			widest = weir_pool_width(group->scheme);
	}
	return widest;
}

static void explain_lean(struct report *report, const struct weir_pool_map *map,
			 unsigned int lean)
{
	unsigned int syncing, width = widest_lean(map, &syncing);
	unsigned int domains = weir_pool_map_count_domains(map);

	if (domains < width) {
		report_add(report, "groups", VERDICT_FAIL,
			   "%u lack a member, and no rebuild can begin: they need %u failure "
			   "domains, and donors are up in %u",
			   lean, width, domains);
		report_remedy(report, "start a donor in another domain: weir serve --pool POOL "
			      "--domain NAME");
	} else if (syncing) {
		report_add(report, "groups", VERDICT_WARN,
			   "%u lack a member; %u are being rebuilt", lean, syncing);
		report_remedy(report, "wait; weir pool status shows how far each group is");
	} else {
		report_add(report, "groups", VERDICT_WARN,
			   "%u lack a member, and no rebuild has begun", lean);
		report_remedy(report, "a donor has some minutes to come back first; then another "
			      "takes its place, if it has room: weir pool donors");
	}
}

static void check_groups(struct report *report, const struct weir_pool_map *map)
{
	unsigned int is[POOL_GROUP_STATES];

	for (int i = 0; i < POOL_GROUP_STATES; i++)
		is[i] = (unsigned int)pool_count_groups(map).of[i];
	if (is[POOL_GROUP_AWAY]) {
		report_add(report, "groups", VERDICT_FAIL,
			   "%u cannot be read or written: all donors with the data are away",
			   is[POOL_GROUP_AWAY]);
		report_remedy(report, "bring a donor that weir pool status names back, without a "
			      "restart: the data are in its memory");
	}
	if (is[POOL_GROUP_LOST]) {
		report_add(report, "groups", VERDICT_FAIL, "%u have lost their data",
			   is[POOL_GROUP_LOST]);
		report_remedy(report, "restore volumes from elsewhere; weir pool status names the "
			      "groups");
	}
	if (is[POOL_GROUP_MISSING]) {
		report_add(report, "groups", VERDICT_FAIL,
			   "%u cannot be made: too few donors or failure domains",
			   is[POOL_GROUP_MISSING]);
		report_remedy(report, "start donors in other domains: weir serve --pool --domain");
	}
	if (is[POOL_GROUP_LEAN])
		explain_lean(report, map, is[POOL_GROUP_LEAN]);
	if (is[POOL_GROUP_WHOLE] == weir_pool_map_groups(map))
		report_add(report, "groups", VERDICT_OK, "%u, each with all members",
			   is[POOL_GROUP_WHOLE]);
}

void check_pool(struct report *report, struct weir_pool_client *client,
		const struct far_host *path)
{
	struct weir_pool_map *map = calloc(1, sizeof(*map));

	if (!map) {
		report_add(report, "map", VERDICT_FAIL, "out of memory");
		return;
	}
	if (check_map(report, client, map)) {
		check_leader(report, map);
		check_donors(report, map);
		check_groups(report, map);
		check_paths(report, map, path);
	}
	free(map);
}
