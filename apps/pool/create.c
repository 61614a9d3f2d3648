/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir pool create */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/pool/pool.h"
#include "lib/pool/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LEASE_S 5
#define REPLACE_S 30
#define GROUPS 64
#define HOUR_S 3600

struct create {
	unsigned int groups;
	double lease, replace_after;
	bool json;
};

static const struct cmdline_option options[] = {
	{ "lease", 0, "SECONDS", "silence after which a donor counts as gone; default 5",
	  CMDLINE_SECONDS(struct create, lease, 1, HOUR_S) },
	{ "replace-after", 0, "SECONDS",
	  "how long the place of a donor that is gone waits for it;\n"
	  "then another donor gets its data; default 30",
	  CMDLINE_SECONDS(struct create, replace_after, 0, 24 * HOUR_S) },
	{ "groups", 0, "N",
	  "groups of donors for each scheme; default 64: enough for\n"
	  "20 donors",
	  CMDLINE_UINT(struct create, groups, 1, WEIR_POOL_GROUPS_MAX) },
	CMDLINE_JSON(struct create, json),
	{ NULL },
};

static const struct cmdline line = {
	.usage = "Usage: weir pool create [OPTION...] POOL\n"
		 "Makes an empty pool: file:PATH, or etcd:http://HOST:2379/NAME. Then start its\n"
		 "donors, with 'weir serve --pool POOL --domain RACK'.\n",
	.options = options,
	.arguments = "POOL",
	.arguments_min = 1,
	.arguments_max = 1,
};

static int put_pool(const char *cmd, const char *pool, struct weir_pool_map *map,
		    struct weir_pool_client *client)
{
	struct weir_pool_put put = { .key = "pool" };
	struct weir_error error;
	char *value;
	int rc;

	randombytes_buf(&map->id, sizeof(map->id));
	value = weir_pool_codec_pool(map);
	if (!value)
		return failure(cmd, "out of memory");
	put.value = value;
	rc = weir_pool_store_put(weir_pool_client_store(client), &put, NULL, &error);
	free(value);
	if (rc == -EAGAIN)
		return failure(cmd, "%s: the pool exists already", pool);
	return rc ? failure(cmd, "%s", error.text) : EXIT_OK;
}

static void print_created(const struct create *create, const char *name,
			  const struct weir_pool_map *map)
{
	struct json json;

	if (!create->json) {
		printf("pool %s is there: start donors with 'weir serve --pool'\n", name);
		return;
	}
	json_begin(&json, stdout);
	json_string(&json, "pool", name);
	json_uint(&json, "lease_ms", map->lease_ms);
	json_uint(&json, "replace_ms", map->replace_ms);
	json_uint(&json, "groups", map->table_groups);
	json_end(&json);
}

int pool_create(const char *cmd, int argc, char **argv)
{
	struct create create = { .groups = GROUPS, .lease = LEASE_S, .replace_after = REPLACE_S };
	int status = cmdline_parse(&line, argc, argv, &create);
	struct pool_session session = { 0 };
	struct weir_error error;

	if (status != CMDLINE_PARSED)
		return status;
	session.map = calloc(1, sizeof(*session.map));
	if (!session.map)
		return failure(cmd, "out of memory");
	if (weir_pool_client_open(argv[optind], &session.client, &error)) {
		pool_session_close(&session);
		return failure(cmd, "%s", error.text);
	}
	session.map->lease_ms = (uint32_t)(create.lease * 1000);
	session.map->replace_ms = (uint32_t)(create.replace_after * 1000);
	session.map->table_groups = (uint16_t)create.groups;
	status = put_pool(cmd, argv[optind], session.map, session.client);
	if (!status)
		print_created(&create, weir_pool_store_name(weir_pool_client_store(session.client)),
			      session.map);
	pool_session_close(&session);
	return status;
}
