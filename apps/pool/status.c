/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir pool status: groups that lack members, since when, and why. */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/pool/pool.h"
#include "core/pool/coordinator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINES_MAX 10 /* of groups that lack members */

struct pool_status {
	bool json;
};

static const struct cmdline_option options[] = {
	CMDLINE_JSON(struct pool_status, json),
	{ NULL },
};

static const struct cmdline line = {
	.usage = "Usage: weir pool status [--json] POOL\n"
		 "Shows whether a pool's groups have all their members.\n",
	.options = options,
	.arguments = "POOL",
	.arguments_min = 1,
	.arguments_max = 1,
};

static const char *leader_of(const struct weir_pool_map *map)
{
	return map->leader < map->nr_donors ? map->donor[map->leader].id : "";
}

/* How far a syncing member is. @is_busy: somebody fills it now */
struct member_progress {
	unsigned int percent;
	bool is_busy;
};

/* A volume weighs its size. The parts of one volume are filled at about the same pace. */
static struct member_progress measure_progress(const struct weir_pool_map *map,
					       const struct weir_pool_group *group,
					       const struct weir_pool_member *m)
{
	struct member_progress progress = { 0 };
	double all = 0, done = 0;

	for (uint16_t i = 0; i < map->nr_volumes; i++) {
		const struct weir_pool_volume *volume = &map->volume[i];
		bool is_synced = weir_pool_member_is_synced(m, i), is_filled;

		if (volume->is_blank || volume->scheme.data != group->scheme.data ||
		    volume->scheme.spare != group->scheme.spare)
			continue;
		is_filled = volume->filled == WEIR_POOL_NO_DONOR ? !volume->is_rebuilding :
								   volume->filled == m->donor;
		all += (double)volume->bytes;
		done += (double)volume->bytes *
			(is_synced ? 100 : is_filled ? volume->progress : 0);
		progress.is_busy |= !is_synced && volume->holder && is_filled;
	}
	progress.percent = all > 0 ? (unsigned int)(done / all) : 100;
	return progress;
}

static void print_group_json(struct json *json, const struct weir_pool_map *map, uint16_t number)
{
	const struct weir_pool_group *group = &map->group[number];

	json_open_object(json, NULL);
	json_uint(json, "group", number);
	json_uint(json, "version", group->version);
	json_string(json, "scheme", weir_pool_scheme_format(group->scheme).text);
	json_uint(json, "lean_since_ms", group->lean_ms);
	json_boolean(json, "lost", weir_pool_group_is_lost(group));
	json_string(json, "state", pool_group_states[pool_group_state(map, group)]);
	json_open_array(json, "members");
	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];
		char incarnation[24];

		snprintf(incarnation, sizeof(incarnation), "%016" PRIx64, m->incarnation);
		json_open_object(json, NULL);
		json_string(json, "donor", map->donor[m->donor].id);
		json_string(json, "incarnation", incarnation);
		json_string(json, "state", weir_pool_member_states[m->state]);
		json_boolean(json, "present", weir_pool_map_is_present(map, m));
		if (m->state == WEIR_POOL_SYNCING)
			json_uint(json, "percent", measure_progress(map, group, m).percent);
		json_close(json);
	}
	json_close(json);
	json_close(json);
}

static void print_json(const struct weir_pool_map *map)
{
	struct pool_group_counts counts = pool_count_groups(map);
	struct json json;

	json_begin(&json, stdout);
	json_string(&json, "pool", map->name);
	json_uint(&json, "donors", weir_pool_map_count_donors(map));
	json_uint(&json, "domains", weir_pool_map_count_domains(map));
	json_uint(&json, "bytes", pool_sum_bytes(map));
	json_string(&json, "coordinator", leader_of(map));
	json_uint(&json, "volumes", map->nr_volumes);
	json_uint(&json, "wrong_reads", pool_sum_wrong_reads(map));
	for (int i = 0; i < POOL_GROUP_STATES; i++)
		json_uint(&json, pool_group_states[i], counts.of[i]);
	json_open_array(&json, "groups");
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		if (map->group[i].version)
			print_group_json(&json, map, i);
	}
	json_close(&json);
	json_end(&json);
}

/* "12:03", with the date if it is another day. */
static void format_time(uint64_t wall_ms, char *text, size_t size)
{
	time_t then = (time_t)(wall_ms / 1000), now = time(NULL);
	struct tm a, b;

	localtime_r(&then, &a);
	localtime_r(&now, &b);
	strftime(text, size,
		 a.tm_yday == b.tm_yday && a.tm_year == b.tm_year ? "%H:%M" : "%Y-%m-%d %H:%M", &a);
}

/* A donor that has the data of a group now, or "". */
static const char *source_of(const struct weir_pool_map *map, const struct weir_pool_group *group)
{
	for (uint8_t i = 0; i < group->nr_members; i++) {
		if (group->member[i].state == WEIR_POOL_SERVING &&
		    weir_pool_map_is_present(map, &group->member[i]))
			return map->donor[group->member[i].donor].id;
	}
	return "";
}

static void print_syncing(const struct weir_pool_map *map, const struct weir_pool_group *group,
			  const struct weir_pool_member *m)
{
	struct member_progress progress = measure_progress(map, group, m);
	const char *id = map->donor[m->donor].id, *source = source_of(map, group);

	if (!*source)
		printf("donor %s waits for a donor that has the data", id);
	else if (progress.percent == 100)
		printf("donor %s has the data, and serves soon", id);
	else if (progress.is_busy)
		printf("donor %s is rebuilding from donor %s, %u %%", id, source,
		       progress.percent);
	else
		printf("donor %s will rebuild from donor %s, %u %% so far", id, source,
		       progress.percent);
}

static void print_members(const struct weir_pool_map *map, const struct weir_pool_group *group)
{
	const char *before = ": ";

	for (uint8_t i = 0; i < group->nr_members; i++) {
		const struct weir_pool_member *m = &group->member[i];
		const char *id = map->donor[m->donor].id;

		if (m->state == WEIR_POOL_SERVING && weir_pool_map_is_present(map, m))
			continue;
		fputs(before, stdout);
		before = ", ";
		if (m->state == WEIR_POOL_SYNCING)
			print_syncing(map, group, m);
		else if (m->state == WEIR_POOL_OUT)
			printf("donor %s is out", id);
		else if (weir_pool_group_count(group, WEIR_POOL_SERVING) <= group->scheme.data)
			printf("donor %s has the only data and is gone", id);
		else
			printf("donor %s is gone", id);
	}
	putchar('\n');
}

/* Whether the group deserves a line: it lacks members, or nobody can read it now. */
static bool is_ill(const struct weir_pool_map *map, const struct weir_pool_group *group)
{
	if (!group->version)
		return false;
	for (uint8_t i = 0; i < group->nr_members; i++) {
		if (!weir_pool_map_is_present(map, &group->member[i]))
			return true;
	}
	return !weir_pool_group_is_whole(group);
}

static void print_group(const struct weir_pool_map *map, uint16_t number)
{
	const struct weir_pool_group *group = &map->group[number];
	unsigned int serving = pool_count_serving(map, group);
	const char *parts = group->scheme.data == 1 ? "copies" : "parts";
	char since[32] = "";

	if (group->lean_ms)
		format_time(group->lean_ms, since, sizeof(since));
	if (weir_pool_group_is_lost(group))
		printf("group %u has lost its data", number);
	else
		printf("group %u has %u of %u %s", number, serving, weir_pool_width(group->scheme),
		       parts);
	printf("%s%s", *since ? " since " : "", since);
	print_members(map, group);
}

static void print_wrong_donors(const struct weir_pool_map *map)
{
	for (uint16_t i = 0; i < map->nr_donors; i++) {
		const struct weir_pool_donor *donor = &map->donor[i];

		if (donor->wrong_reads)
			printf("donor %s returned wrong bytes in %" PRIu64
			       " reads of donors that rebuild; they took other parts\n",
			       donor->id, donor->wrong_reads);
	}
}

static void print_ill_groups(const struct weir_pool_map *map)
{
	unsigned int ill = 0;

	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		if (is_ill(map, &map->group[i]) && ill++ < LINES_MAX)
			print_group(map, i);
	}
	if (ill > LINES_MAX)
		printf("and %u groups more: see --json\n", ill - LINES_MAX);
}

static void print_text(const struct weir_pool_map *map)
{
	struct pool_group_counts counts = pool_count_groups(map);

	printf("pool %s: %u donors in %u failure domains, %s; %u volume%s\n", map->name,
	       weir_pool_map_count_donors(map), weir_pool_map_count_domains(map),
	       size_format(pool_sum_bytes(map)).text, map->nr_volumes,
	       map->nr_volumes == 1 ? "" : "s");
	if (map->leader_stored)
		printf("donor %s coordinates\n", leader_of(map));
	else
		puts("no donor coordinates: nothing changes until one does");
	printf("groups: %" PRIu64 " whole, %" PRIu64 " lack a member, %" PRIu64 " away, %" PRIu64
	       " lost\n",
	       counts.of[POOL_GROUP_WHOLE], counts.of[POOL_GROUP_LEAN], counts.of[POOL_GROUP_AWAY],
	       counts.of[POOL_GROUP_LOST]);
	if (counts.of[POOL_GROUP_AWAY])
		printf("%" PRIu64 " groups cannot be read or written until a donor with the data "
		       "is back\n",
		       counts.of[POOL_GROUP_AWAY]);
	if (counts.of[POOL_GROUP_MISSING])
		printf("%" PRIu64 " groups cannot be made: too few donors or failure domains\n",
		       counts.of[POOL_GROUP_MISSING]);
	print_wrong_donors(map);
	print_ill_groups(map);
}

int pool_status(const char *cmd, int argc, char **argv)
{
	struct pool_status status = { 0 };
	int rc = cmdline_parse(&line, argc, argv, &status);
	struct pool_session session = { 0 };

	if (rc != CMDLINE_PARSED)
		return rc;
	rc = pool_session_open(&session, cmd, argv[optind]);
	if (rc)
		return rc;
	if (status.json)
		print_json(session.map);
	else
		print_text(session.map);
	pool_session_close(&session);
	return EXIT_OK;
}
