/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir pool volume create, list and rm */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/size.h"
#include "apps/common/table.h"
#include "apps/pool/pool.h"
#include "core/pool/coordinator.h"
#include "fsd/journal/layout.h"
#include "lib/base/clock.h"
#include "lib/pool/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define FILES_MIN FSD_LAYOUT_BYTES_MIN
#define EXTENT (4u << 20)
#define EXTENT_MIN (64u << 10)
#define EXTENT_MAX (1u << 30)
#define WAIT_S 10 /* for the groups of a new scheme */

struct volume_options {
	const char *scheme;
	uint64_t extent;
	bool json, is_files;
};

static const struct cmdline_option create_options[] = {
	{ "scheme", 0, "SCHEME",
	  "copies=N, 1 to 4, or code=K+R: K parts of data and R that may\n"
	  "be lost; default copies=2",
	  CMDLINE_TEXT(struct volume_options, scheme) },
	{ "files", 0, NULL, "for 'weir mount': a donor serves its files",
	  CMDLINE_FLAG(struct volume_options, is_files) },
	{ "extent", 0, "SIZE", "bytes that lie together at one group; default 4M",
	  CMDLINE_SIZE(struct volume_options, extent, EXTENT_MIN, EXTENT_MAX) },
	CMDLINE_JSON(struct volume_options, json),
	{ NULL },
};

static const struct cmdline create_line = {
	.usage = "Usage: weir pool volume create [OPTION...] POOL NAME SIZE\n"
		 "Makes a volume. Its first client takes the memory from the donors.\n",
	.options = create_options,
	.arguments = "POOL NAME SIZE",
	.arguments_min = 3,
	.arguments_max = 3,
};

static const struct cmdline_option list_options[] = {
	CMDLINE_JSON(struct volume_options, json),
	{ NULL },
};

static const struct cmdline list_line = {
	.usage = "Usage: weir pool volume list [--json] POOL\n"
		 "Lists the volumes of a pool.\n",
	.options = list_options,
	.arguments = "POOL",
	.arguments_min = 1,
	.arguments_max = 1,
};

static const struct cmdline rm_line = {
	.usage = "Usage: weir pool volume rm [--json] POOL NAME\n"
		 "Removes a volume that no client has open. Its data is lost.\n",
	.options = list_options,
	.arguments = "POOL NAME",
	.arguments_min = 2,
	.arguments_max = 2,
};

/* Whether the pool's donors are enough for the volume. */
static int check_room(const char *cmd, const struct weir_pool_map *map,
		      const struct weir_pool_volume *volume)
{
	uint8_t width = weir_pool_width(volume->scheme);
	uint16_t donors = weir_pool_map_count_donors(map);
	uint16_t domains = weir_pool_map_count_domains(map);
	uint64_t sum = 0;

	for (uint16_t i = 0; i < map->nr_donors; i++)
		sum += map->donor[i].incarnation ? map->donor[i].bytes : 0;
	if (domains < width)
		return failure(cmd,
			       "%s needs donors in %u failure domains; pool %s has %u donors in "
			       "%u: start more, or give 'weir serve' another --domain",
			       weir_pool_scheme_format(volume->scheme).text, width, map->name,
			       donors, domains);
	if (volume->bytes / volume->scheme.data > sum / width)
		return failure(cmd, "%s with %s is more than the donors of pool %s lend, %s",
			       size_format(volume->bytes).text,
			       weir_pool_scheme_format(volume->scheme).text, map->name,
			       size_format(sum).text);
	if (!weir_pool_map_table(map, volume->scheme) &&
	    (map->nr_tables == WEIR_POOL_TABLES_MAX ||
	     weir_pool_map_groups(map) + map->table_groups > (int)WEIR_POOL_GROUPS_MAX))
		return failure(cmd, "pool %s has no groups left for another scheme: use one that "
				    "'weir pool volume list' shows", map->name);
	return EXIT_OK;
}

static int put_volume(const char *cmd, struct pool_session *session,
		      const struct weir_pool_volume *volume)
{
	char key[WEIR_POOL_NAME_MAX + 16], *value = weir_pool_codec_volume(volume);
	struct weir_pool_put put = { .key = key, .value = value };
	struct weir_error error;
	int rc;

	if (!value)
		return failure(cmd, "out of memory");
	snprintf(key, sizeof(key), "volume/%s", volume->name);
	rc = weir_pool_store_put(weir_pool_client_store(session->client), &put, NULL, &error);
	free(value);
	if (rc == -EAGAIN)
		return failure(cmd, "pool %s has a volume %s already", session->map->name,
			       volume->name);
	return rc ? failure(cmd, "%s", error.text) : EXIT_OK;
}

/* Waits until the coordinator has made the groups. */
static int wait_ready(const char *cmd, struct pool_session *session,
		      const struct weir_pool_volume *volume)
{
	uint64_t until_ns = weir_now_ns() + WAIT_S * WEIR_NS_PER_S;
	struct weir_error error;

	while (!weir_pool_map_is_ready(session->map, volume->scheme)) {
		int ms = weir_poll_ms(until_ns);
		int rc = weir_pool_client_wait(session->client, session->map, (unsigned int)ms,
					       &error);

		if (!ms || (rc && rc != -ETIMEDOUT))
			return failure(cmd,
				       "volume %s is made, but its groups are not yet: 'weir pool "
				       "status' shows whether a donor coordinates",
				       volume->name);
		if (!rc && weir_pool_client_read(session->client, session->map, &error))
			return failure(cmd, "%s", error.text);
	}
	return EXIT_OK;
}

static void print_volume_json(struct json *json, const struct weir_pool_map *map,
			      const struct weir_pool_volume *volume)
{
	json_string(json, "volume", volume->name);
	json_uint(json, "bytes", volume->bytes);
	json_uint(json, "extent_bytes", volume->extent_bytes);
	json_string(json, "scheme", weir_pool_scheme_format(volume->scheme).text);
	json_boolean(json, "ready", weir_pool_map_is_ready(map, volume->scheme));
	json_boolean(json, "open", volume->holder && !volume->is_rebuilding);
	json_boolean(json, "rebuilding", volume->is_rebuilding);
	json_boolean(json, "blank", volume->is_blank);
	json_boolean(json, "files", volume->is_files);
	if (volume->is_files)
		json_boolean(json, "mounted",
			     weir_pool_map_is_served(volume) && volume->is_mounted);
	if (weir_pool_map_is_served(volume))
		json_string(json, "server", volume->server);
}

static int create_volume(const char *cmd, const struct volume_options *options,
			 struct pool_session *session, struct weir_pool_volume *volume)
{
	struct json json;
	int status = check_room(cmd, session->map, volume);

	randombytes_buf(&volume->id, sizeof(volume->id));
	if (!status)
		status = put_volume(cmd, session, volume);
	if (!status)
		status = wait_ready(cmd, session, volume);
	if (status)
		return status;
	if (options->json) {
		json_begin(&json, stdout);
		print_volume_json(&json, session->map, volume);
		json_end(&json);
	} else {
		printf("volume %s/%s: %s, %s\n", session->map->name, volume->name,
		       size_format(volume->bytes).text,
		       weir_pool_scheme_format(volume->scheme).text);
	}
	return EXIT_OK;
}

/* Fills a volume from the command line. */
static int parse_volume(const char *cmd, const struct volume_options *options, const char *name,
			const char *size, struct weir_pool_volume *volume)
{
	int rc = weir_pool_scheme_parse(options->scheme, &volume->scheme);

	if (rc)
		return usage_error(cmd, "%s: expected a scheme: copies=1 to copies=4, or code=K+R "
					"with at most 8 parts", options->scheme);
	if (!weir_pool_map_is_name(name))
		return usage_error(cmd, "'%s': expected a name of up to 63 letters, digits and "
					". _ - :", name);
	if (size_parse(size, &volume->bytes) || !volume->bytes || volume->bytes % PAGE)
		return usage_error(cmd, "%s: expected a multiple of 4096 bytes", size);
	if (options->is_files && volume->bytes < FILES_MIN)
		return usage_error(cmd, "%s: a volume of files has at least %s", size,
				   size_format(FILES_MIN).text);
	if (options->is_files && volume->scheme.data != 1)
		return usage_error(cmd, "--files: files need copies yet, not %s", options->scheme);
	if (options->extent & (options->extent - 1))
		return usage_error(cmd, "--extent: expected a power of two");
	snprintf(volume->name, sizeof(volume->name), "%s", name);
	volume->extent_bytes = options->extent;
	volume->is_blank = true;
	volume->is_files = options->is_files;
	return EXIT_OK;
}

int pool_volume_create(const char *cmd, int argc, char **argv)
{
	struct volume_options options = { .scheme = "copies=2", .extent = EXTENT };
	int status = cmdline_parse(&create_line, argc, argv, &options);
	struct pool_session session = { 0 };
	struct weir_pool_volume volume = { 0 };

	if (status != CMDLINE_PARSED)
		return status;
	status = parse_volume(cmd, &options, argv[optind + 1], argv[optind + 2], &volume);
	if (status)
		return status;
	status = pool_session_open(&session, cmd, argv[optind]);
	if (status)
		return status;
	status = create_volume(cmd, &options, &session, &volume);
	pool_session_close(&session);
	return status;
}

static void print_list_json(const struct weir_pool_map *map)
{
	struct json json;

	json_begin(&json, stdout);
	json_string(&json, "pool", map->name);
	json_open_array(&json, "volumes");
	for (uint16_t i = 0; i < map->nr_volumes; i++) {
		json_open_object(&json, NULL);
		print_volume_json(&json, map, &map->volume[i]);
		json_close(&json);
	}
	json_close(&json);
	json_end(&json);
}

static const char *volume_state(const struct weir_pool_map *map,
				const struct weir_pool_volume *volume)
{
	if (!weir_pool_map_is_ready(map, volume->scheme))
		return "waits for donors";
	if (volume->is_rebuilding)
		return "rebuilding";
	if (volume->is_files && volume->holder)
		return !weir_pool_map_is_served(volume) ? "opening" :
		       volume->is_mounted		   ? "mounted" :
							     "served";
	return volume->holder ? "open" : volume->is_blank ? "empty" : "closed";
}

static void print_list(const struct weir_pool_map *map)
{
	static const char *const heads[] = { "volume", "size", "scheme", "extent", "state" };
	struct text_table table;

	table_init(&table, 5);
	for (unsigned int i = 0; i < 5; i++)
		table_add(&table, "%s", heads[i]);
	for (uint16_t i = 0; i < map->nr_volumes; i++) {
		const struct weir_pool_volume *volume = &map->volume[i];

		table_add(&table, "%s", volume->name);
		table_add(&table, "%s", size_format(volume->bytes).text);
		table_add(&table, "%s", weir_pool_scheme_format(volume->scheme).text);
		table_add(&table, "%s", size_format(volume->extent_bytes).text);
		table_add(&table, "%s", volume_state(map, volume));
	}
	table_print(&table, stdout);
	table_fini(&table);
}

int pool_volume_list(const char *cmd, int argc, char **argv)
{
	struct volume_options options = { 0 };
	int status = cmdline_parse(&list_line, argc, argv, &options);
	struct pool_session session = { 0 };

	if (status != CMDLINE_PARSED)
		return status;
	status = pool_session_open(&session, cmd, argv[optind]);
	if (status)
		return status;
	if (options.json)
		print_list_json(session.map);
	else
		print_list(session.map);
	pool_session_close(&session);
	return EXIT_OK;
}

static int remove_volume(const char *cmd, struct pool_session *session, const char *name)
{
	const struct weir_pool_volume *volume = weir_pool_map_volume(session->map, name);
	char key[WEIR_POOL_NAME_MAX + 16], holder[WEIR_POOL_NAME_MAX + 16];
	struct weir_pool_put put = { .key = key, .guard = holder };
	struct weir_pool_store *store = weir_pool_client_store(session->client);
	struct weir_error error;
	int rc;

	if (!volume)
		return failure(cmd, "pool %s has no volume %s: see 'weir pool volume list'",
			       session->map->name, name);
	if (weir_pool_map_is_served(volume) && volume->is_mounted)
		return failure(cmd, "volume %s is mounted: unmount it first", name);
	snprintf(key, sizeof(key), "volume/%s", name);
	snprintf(holder, sizeof(holder), "holder/%s", name);
	put.expected = volume->stored;
	/* The guard: nobody has the volume open. Donors that rebuild or serve it give way. */
	put.guard_version = volume->is_rebuilding || volume->is_files ? volume->holder : 0;
	rc = weir_pool_store_put(store, &put, NULL, &error);
	if (rc == -EAGAIN)
		return failure(cmd, "volume %s: a client has it open, or has just opened it", name);
	if (rc)
		return failure(cmd, "%s", error.text);
	snprintf(key, sizeof(key), "synced/%s", name);
	put = (struct weir_pool_put){ .key = key, .expected = WEIR_POOL_ANY_VERSION };
	return weir_pool_store_put(store, &put, NULL, &error) ? failure(cmd, "%s", error.text) :
								EXIT_OK;
}

int pool_volume_rm(const char *cmd, int argc, char **argv)
{
	struct volume_options options = { 0 };
	int status = cmdline_parse(&rm_line, argc, argv, &options);
	struct pool_session session = { 0 };
	struct json json;

	if (status != CMDLINE_PARSED)
		return status;
	status = pool_session_open(&session, cmd, argv[optind]);
	if (status)
		return status;
	status = remove_volume(cmd, &session, argv[optind + 1]);
	if (!status && options.json) {
		json_begin(&json, stdout);
		json_string(&json, "volume", argv[optind + 1]);
		json_boolean(&json, "removed", true);
		json_end(&json);
	}
	pool_session_close(&session);
	return status;
}
