/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir pool donors, weir pool drain */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/table.h"
#include "apps/pool/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct donors {
	bool json, undo;
};

static const struct cmdline_option donors_options[] = {
	CMDLINE_JSON(struct donors, json),
	{ NULL },
};

static const struct cmdline donors_line = {
	.usage = "Usage: weir pool donors [--json] POOL\n"
		 "Lists the donors of a pool. A donor has a place in each group that it is a\n"
		 "member of: serving, syncing (it gets the data) or out (another must have its\n"
		 "data). Clients admit a donor with an identity under that one only; the table\n"
		 "shows its first digits.\n",
	.options = donors_options,
	.arguments = "POOL",
	.arguments_min = 1,
	.arguments_max = 1,
};

static const struct cmdline_option drain_options[] = {
	{ "undo", 0, NULL, "use the donor again", CMDLINE_FLAG(struct donors, undo) },
	CMDLINE_JSON(struct donors, json),
	{ NULL },
};

static const struct cmdline drain_line = {
	.usage = "Usage: weir pool drain [OPTION...] POOL DONOR\n"
		 "Gives the places of a donor to others. The donor serves until they have its\n"
		 "data. 'weir pool donors' shows what is left; with no place left the donor may\n"
		 "end.\n",
	.options = drain_options,
	.arguments = "POOL DONOR",
	.arguments_min = 2,
	.arguments_max = 2,
};

struct identity_text {
	char text[2 * WEIR_POOL_IDENTITY + 1];
};

/* As 'weir key identity' prints it; empty: none. */
static struct identity_text identity_of(const struct weir_pool_donor *donor)
{
	struct identity_text identity = { "" };

	for (unsigned int i = 0; donor->has_identity && i < WEIR_POOL_IDENTITY; i++)
		sprintf(identity.text + 2 * i, "%02x", donor->identity[i]);
	return identity;
}

static void print_donors_json(const struct weir_pool_map *map)
{
	struct json json;

	json_begin(&json, stdout);
	json_string(&json, "pool", map->name);
	json_open_array(&json, "donors");
	for (uint16_t i = 0; i < map->nr_donors; i++) {
		const struct weir_pool_donor *donor = &map->donor[i];
		struct pool_places places = pool_count_places(map, i);
		char incarnation[24];

		snprintf(incarnation, sizeof(incarnation), "%016" PRIx64, donor->incarnation);
		json_open_object(&json, NULL);
		json_string(&json, "name", donor->id);
		json_string(&json, "state", pool_donor_state(map, i));
		json_string(&json, "address", donor->address);
		json_string(&json, "domain", donor->domain);
		json_uint(&json, "bytes", donor->bytes);
		json_string(&json, "incarnation", incarnation);
		json_string(&json, "identity", identity_of(donor).text);
		json_boolean(&json, "draining", donor->is_draining);
		json_uint(&json, "wrong_reads", donor->wrong_reads);
		for (unsigned int state = 0; state < 3; state++)
			json_uint(&json, weir_pool_member_states[state], places.of[state]);
		json_close(&json);
	}
	json_close(&json);
	json_end(&json);
}

static void print_donors(const struct weir_pool_map *map)
{
	static const char *const heads[] = { "donor",	"state",   "domain", "memory",
					     "serving", "syncing", "out",    "identity" };
	struct text_table table;

	table_init(&table, 8);
	for (unsigned int i = 0; i < 8; i++)
		table_add(&table, "%s", heads[i]);
	for (uint16_t i = 0; i < map->nr_donors; i++) {
		const struct weir_pool_donor *donor = &map->donor[i];
		struct pool_places places = pool_count_places(map, i);

		table_add(&table, "%s", donor->id);
		table_add(&table, "%s", pool_donor_state(map, i));
		table_add(&table, "%s", *donor->domain ? donor->domain : "-");
		table_add(&table, "%s", size_format(donor->bytes).text);
		for (unsigned int state = 0; state < 3; state++)
			table_add(&table, "%u", places.of[state]);
		table_add(&table, "%.16s", donor->has_identity ? identity_of(donor).text : "-");
	}
	table_print(&table, stdout);
	table_fini(&table);
}

int pool_donors(const char *cmd, int argc, char **argv)
{
	struct donors donors = { 0 };
	int status = cmdline_parse(&donors_line, argc, argv, &donors);
	struct pool_session session = { 0 };

	if (status != CMDLINE_PARSED)
		return status;
	status = pool_session_open(&session, cmd, argv[optind]);
	if (status)
		return status;
	if (donors.json)
		print_donors_json(session.map);
	else
		print_donors(session.map);
	pool_session_close(&session);
	return EXIT_OK;
}

static void say_drain(const struct donors *donors, const struct weir_pool_map *map, uint16_t index)
{
	struct pool_places places = pool_count_places(map, index);
	unsigned int left = places.of[WEIR_POOL_SERVING] + places.of[WEIR_POOL_SYNCING];
	struct json json;

	if (donors->json) {
		json_begin(&json, stdout);
		json_string(&json, "donor", map->donor[index].id);
		json_boolean(&json, "draining", !donors->undo);
		json_uint(&json, "places", left);
		json_end(&json);
	} else if (donors->undo) {
		printf("donor %s is in use again\n", map->donor[index].id);
	} else {
		printf("donor %s: %u places to give to others; it serves until they have the "
		       "data\n",
		       map->donor[index].id, left);
	}
}

static int drain(const char *cmd, const struct donors *donors, struct pool_session *session,
		 const char *name)
{
	uint16_t index = weir_pool_map_donor(session->map, name);
	char key[WEIR_POOL_NAME_MAX + 16];
	struct weir_pool_put put = { .key = key, .value = donors->undo ? NULL : "{}",
				     .expected = WEIR_POOL_ANY_VERSION };
	struct weir_error error;

	if (index == WEIR_POOL_NO_DONOR)
		return failure(cmd, "pool %s has no donor %s: see 'weir pool donors'",
			       session->map->name, name);
	snprintf(key, sizeof(key), "drain/%s", session->map->donor[index].id);
	if (weir_pool_store_put(weir_pool_client_store(session->client), &put, NULL, &error))
		return failure(cmd, "%s", error.text);
	say_drain(donors, session->map, index);
	return EXIT_OK;
}

int pool_drain(const char *cmd, int argc, char **argv)
{
	struct donors donors = { 0 };
	int status = cmdline_parse(&drain_line, argc, argv, &donors);
	struct pool_session session = { 0 };

	if (status != CMDLINE_PARSED)
		return status;
	status = pool_session_open(&session, cmd, argv[optind]);
	if (status)
		return status;
	status = drain(cmd, &donors, &session, argv[optind + 1]);
	pool_session_close(&session);
	return status;
}
