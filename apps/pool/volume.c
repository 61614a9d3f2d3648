/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* weir pool volume create, list and rm */
#include "apps/common/cmd.h"
#include "apps/common/cmdline.h"
#include "apps/common/json.h"
#include "apps/common/number.h"
#include "apps/common/size.h"
#include "apps/common/stop.h"
#include "apps/common/table.h"
#include "apps/pool/pool.h"
#include "core/pool/coordinator.h"
#include "fsd/journal/layout.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
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
#define WAIT_S 30 /* default of --wait */
#define WAIT_S_MAX 86400
#define LOOK_MS 500u /* then a stop is noticed */
#define SETTLE_NS (1 * WEIR_NS_PER_S)

struct volume_options {
	const char *scheme;
	uint64_t extent;
	unsigned int wait; /* seconds */
	bool json, is_files;
};

static const char *const usual_schemes[] = { "copies=1", "copies=2", "copies=3", "copies=4",
					     "code=2+1", "code=4+2",  "code=6+2" };

static const struct cmdline_option create_options[] = {
	{ "scheme", 0, "SCHEME",
	  "copies=N, 1 to 4, or code=K+R: K parts of data and R that may\n"
	  "be lost; default copies=2",
	  CMDLINE_TEXT(struct volume_options, scheme), CMDLINE_OFFERS(usual_schemes) },
	{ "files", 0, NULL, "for 'weir mount': a donor serves its files",
	  CMDLINE_FLAG(struct volume_options, is_files) },
	{ "extent", 0, "SIZE", "bytes that lie together at one group; default 4M",
	  CMDLINE_SIZE(struct volume_options, extent, EXTENT_MIN, EXTENT_MAX) },
	{ "wait", 0, "SECONDS",
	  "time for enough donors to join, and for one to make the groups;\n"
	  "default 30",
	  CMDLINE_UINT(struct volume_options, wait, 0, WAIT_S_MAX) },
	CMDLINE_JSON(struct volume_options, json),
	{ NULL },
};

static const struct cmdline create_line = {
	.usage = "Usage: weir pool volume create [OPTION...] POOL NAME SIZE\n"
		 "Makes a volume. Its first client takes the memory from the donors. Ctrl-C ends\n"
		 "the wait for donors, and makes no volume.\n",
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

/* Until @until_ns, but not too long to notice a stop. */
static unsigned int pause_ms(uint64_t until_ns)
{
	return (unsigned int)lesser((uint64_t)weir_poll_ms(until_ns), LOOK_MS);
}

/* Whether the pool's donors are enough for the volume. @lack: receives what is missing. */
static bool has_donors(const struct weir_pool_map *map, const struct weir_pool_volume *volume,
		       struct weir_error *lack)
{
	uint8_t width = weir_pool_width(volume->scheme);
	uint16_t donors = weir_pool_map_count_donors(map);
	uint16_t domains = weir_pool_map_count_domains(map);
	uint64_t sum = pool_sum_bytes(map);

	if (domains < width)
		weir_error_set(lack, -ENOSPC,
			       "%s needs donors in %u failure domains; pool %s has %u donors in "
			       "%u: start more, or give 'weir serve' another --domain",
			       weir_pool_scheme_format(volume->scheme).text, width, map->name,
			       donors, domains);
	else if (volume->bytes / volume->scheme.data > sum / width)
		weir_error_set(lack, -ENOSPC,
			       "%s with %s is more than the donors of pool %s lend, %s",
			       size_format(volume->bytes).text,
			       weir_pool_scheme_format(volume->scheme).text, map->name,
			       size_format(sum).text);
	else
		return true;
	return false;
}

/* Waits until the pool has enough donors. */
static int wait_donors(const char *cmd, struct pool_session *session,
		       const struct weir_pool_volume *volume, uint64_t until_ns)
{
	struct weir_error lack;
	bool is_said = false;
	int status = EXIT_OK;

	while (!status && !has_donors(session->map, volume, &lack)) {
		if (stop_requested())
			return failure(cmd, "stopped: volume %s is not made", volume->name);
		if (weir_now_ns() >= until_ns)
			return failure(cmd, "%s", lack.text);
		if (!is_said)
			fprintf(stderr, "%s: waiting for donors, until --wait is over: %s\n", cmd,
				lack.text);
		is_said = true;
		status = pool_session_look_again(session, cmd, pause_ms(until_ns));
	}
	return status;
}

/*
 * The groups of a scheme are laid out once, over the donors that are there, and donors that start
 * together join one after the other. So the first volume of a scheme waits until no more join.
 */
static int wait_settled(const char *cmd, struct pool_session *session,
			const struct weir_pool_volume *volume, uint64_t until_ns)
{
	uint16_t donors = weir_pool_map_count_donors(session->map);
	uint64_t settled_ns = weir_now_ns() + SETTLE_NS;
	int status = EXIT_OK;

	while (!status && !weir_pool_map_table(session->map, volume->scheme) &&
	       weir_now_ns() < until_ns && weir_now_ns() < settled_ns) {
		if (stop_requested())
			return failure(cmd, "stopped: volume %s is not made", volume->name);
		status = pool_session_look_again(session, cmd, pause_ms(settled_ns));
		if (weir_pool_map_count_donors(session->map) != donors)
			settled_ns = weir_now_ns() + SETTLE_NS;
		donors = weir_pool_map_count_donors(session->map);
	}
	return status;
}

static int check_tables(const char *cmd, const struct weir_pool_map *map,
			const struct weir_pool_volume *volume)
{
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
		      const struct weir_pool_volume *volume, uint64_t until_ns)
{
	int status = pool_session_look_again(session, cmd, 0);

	while (!status && !weir_pool_map_is_ready(session->map, volume->scheme)) {
		if (stop_requested() || weir_now_ns() >= until_ns)
			return failure(cmd,
				       "volume %s is made, but its groups are not yet: 'weir pool "
				       "status' shows whether a donor coordinates",
				       volume->name);
		status = pool_session_look_again(session, cmd, pause_ms(until_ns));
	}
	return status;
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
	uint64_t until_ns = weir_now_ns() + options->wait * WEIR_NS_PER_S;
	struct json json;
	int status = wait_donors(cmd, session, volume, until_ns);

	if (!status)
		status = wait_settled(cmd, session, volume, until_ns);
	if (!status)
		status = check_tables(cmd, session->map, volume);
	randombytes_buf(&volume->id, sizeof(volume->id));
	if (!status)
		status = put_volume(cmd, session, volume);
	if (!status)
		status = wait_ready(cmd, session, volume, until_ns);
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
		return usage_error(cmd, "--files: files need copies, not %s", options->scheme);
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
	struct volume_options options = { .scheme = "copies=2", .extent = EXTENT, .wait = WAIT_S };
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
	stop_on_signals();
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
	char key[WEIR_POOL_NAME_MAX + 16], guard[WEIR_POOL_NAME_MAX + 16];
	struct weir_pool_put put = { .key = key, .guard = guard };
	struct weir_pool_store *store = weir_pool_client_store(session->client);
	struct weir_error error;
	int rc;

	if (!volume)
		return failure(cmd, "pool %s has no volume %s: see 'weir pool volume list'",
			       session->map->name, name);
	if (weir_pool_map_is_served(volume) && volume->is_mounted)
		return failure(cmd, "volume %s is mounted: unmount it first", name);
	snprintf(key, sizeof(key), "volume/%s", name);
	put.expected = volume->stored;
	/*
	 * The guard: nobody has opened or mounted the volume meanwhile. Donors that rebuild or
	 * serve it give way.
	 */
	if (weir_pool_map_is_served(volume)) {
		snprintf(guard, sizeof(guard), "server/%s", name);
		put.guard_version = volume->server_stored;
	} else {
		snprintf(guard, sizeof(guard), "holder/%s", name);
		if (volume->is_rebuilding || volume->is_files)
			put.guard_version = volume->holder;
	}
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
