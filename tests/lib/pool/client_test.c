/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib pool client; suites: lib pool; timeout: 60 */
/* A client's view of a pool: from keys to a map, opening volumes, and reports. */
#include "tests/lib/pool/store_suite.h"

#include <unistd.h>

#include "lib/pool/client.h"
#include "lib/pool/codec.h"
#include "lib/pool/lead.h"

static char folder[] = "/tmp/weir-pool-client-XXXXXX";
static char where[128];
static struct weir_pool_store *store;
static struct weir_pool_client *client;
static struct weir_pool_map *map;

static int begin(void **state)
{
	static unsigned int pools;

	(void)state;
	snprintf(where, sizeof(where), "file:%s/p%u", folder, pools++);
	store = store_suite_open(where);
	map = calloc(1, sizeof(*map));
	return weir_pool_client_open(where, &client, NULL);
}

static int end(void **state)
{
	(void)state;
	weir_pool_client_close(client);
	weir_pool_store_close(store);
	free(map);
	return 0;
}

static void put_pool(void)
{
	store_suite_put(store, "pool",
			"{\"format\":1,\"id\":\"2a\",\"lease_ms\":5000,\"replace_ms\":30000,"
			"\"groups\":2}");
}

#define IDENTITY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* The second has no identity, as a donor of an older version. */
static void put_donors(void)
{
	store_suite_put(store, "donor/a",
			"{\"address\":\"10.0.0.1:7474\",\"domain\":\"r1\",\"bytes\":4096,"
			"\"incarnation\":\"ff00000000000001\",\"identity\":\"" IDENTITY "\"}");
	store_suite_put(store, "donor/b",
			"{\"address\":\"10.0.0.2:7474\",\"domain\":\"r2\",\"bytes\":4096,"
			"\"incarnation\":\"2\"}");
}

#define MEMBER(donor, incarnation, shard, state)                                       \
	"{\"donor\":\"" donor "\",\"incarnation\":\"" incarnation "\",\"shard\":" shard \
	",\"joined\":2,\"state\":\"" state "\"}"
#define MEMBERS MEMBER("a", "ff00000000000001", "0", "serving") "," \
		MEMBER("b", "2", "1", "syncing")
#define GROUP "{\"version\":3,\"scheme\":\"copies=2\",\"lean_ms\":7,\"members\":[" MEMBERS "]}"

static void put_volume(const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "volume/%s", name);
	store_suite_put(store, "table/copies=2", "{\"first\":4,\"count\":2}");
	store_suite_put(store, "group/4", GROUP);
	store_suite_put(store, "group/5", GROUP);
	store_suite_put(store, key,
			"{\"id\":\"9\",\"bytes\":8192,\"extent_bytes\":4096,"
			"\"scheme\":\"copies=2\",\"blank\":true}");
}

static void read_map(void)
{
	struct weir_error error;

	if (weir_pool_client_read(client, map, &error))
		fail_msg("%s", error.text);
}

static void a_pool_that_does_not_exist_is_named(void **state)
{
	struct weir_error error;

	(void)state;
	put_donors();
	assert_int_equal(weir_pool_client_read(client, map, &error), -ENOENT);
	assert_non_null(strstr(error.text, "weir pool create"));
}

static void keys_become_a_map(void **state)
{
	uint16_t a, b;

	(void)state;
	put_pool();
	put_donors();
	put_volume("v");
	store_suite_put(store, "leader", "{\"donor\":\"b\"}");
	store_suite_put(store, "drain/a", "{}");
	store_suite_put(store, "failed/c", "{\"incarnation\":\"3\",\"by\":\"x:1\"}");
	read_map();
	assert_int_equal(map->id, 0x2a);
	assert_int_equal(map->lease_ms, 5000);
	assert_int_equal(map->nr_donors, 3);
	a = weir_pool_map_donor(map, "a");
	b = weir_pool_map_donor(map, "b");
	assert_string_equal(map->donor[a].address, "10.0.0.1:7474");
	assert_string_equal(map->donor[b].domain, "r2");
	assert_true(map->donor[a].incarnation == 0xff00000000000001);
	assert_true(map->donor[a].is_draining);
	assert_true(map->donor[a].has_identity);
	assert_int_equal(map->donor[a].identity[1], 0x11);
	assert_int_equal(map->donor[a].identity[31], 0xff);
	assert_false(map->donor[b].has_identity);
	assert_int_equal(map->donor[weir_pool_map_donor(map, "c")].failed, 3);
	assert_int_equal(map->leader, b);
	assert_true(weir_pool_map_is_ready(map, (struct weir_pool_scheme){ 1, 1 }));
	assert_int_equal(map->group[5].version, 3);
	assert_int_equal(map->group[5].lean_ms, 7);
	assert_int_equal(map->group[5].nr_members, 2);
	assert_int_equal(map->group[5].member[1].donor, b);
	assert_int_equal(map->group[5].member[1].state, WEIR_POOL_SYNCING);
	assert_int_equal(map->volume[0].bytes, 8192);
}

/* Each value, written from the map that was read from it, gives the same map. */
static void values_survive_a_round_trip(void **state)
{
	struct weir_pool_map *again = calloc(1, sizeof(*again));
	char *values[6];

	(void)state;
	put_pool();
	put_donors();
	put_volume("v");
	read_map();
	*again = *map;
	values[0] = weir_pool_codec_pool(map);
	values[1] = weir_pool_codec_donor(&map->donor[0]);
	values[2] = weir_pool_codec_table(&map->table[0]);
	values[3] = weir_pool_codec_group(map, &map->group[4]);
	values[4] = weir_pool_codec_volume(&map->volume[0]);
	store_suite_put(store, "pool", values[0]);
	store_suite_put(store, "donor/a", values[1]);
	store_suite_put(store, "table/copies=2", values[2]);
	store_suite_put(store, "group/4", values[3]);
	store_suite_put(store, "volume/v", values[4]);
	read_map();
	again->revision = map->revision;
	again->stored = map->stored;
	again->donor[0].stored = map->donor[0].stored;
	again->group[4].stored = map->group[4].stored;
	again->volume[0].stored = map->volume[0].stored;
	assert_memory_equal(map, again, sizeof(*map));
	for (int i = 0; i < 5; i++)
		free(values[i]);
	free(again);
}

#define DONOR_WITH(identity)                                                 \
	"{\"address\":\"h:1\",\"domain\":\"r\",\"incarnation\":\"1\",\"identity\":" \
	identity "}"

static void a_damaged_key_is_named(void **state)
{
	static const struct {
		const char *key, *value;
		int rc;
	} cases[] = {
		{ "donor/x", "{}", -EPROTO },
		{ "donor/x", "nothing", -EPROTO },
		{ "donor/x", "[1]", -EPROTO },
		{ "donor/x", "{\"address\":\"a b\",\"domain\":\"r\",\"incarnation\":\"1\"}",
		  -EPROTO },
		{ "donor/x", DONOR_WITH("\"" IDENTITY "00\""), -EPROTO },
		{ "donor/x", DONOR_WITH("\"0011\""), -EPROTO },
		{ "donor/x", DONOR_WITH("\"\""), -EPROTO },
		{ "donor/x", DONOR_WITH("7"), -EPROTO },
		{ "group/1024", GROUP, -EPROTO },
		{ "group/x", GROUP, -EPROTO },
		{ "group/1", "{\"version\":1,\"scheme\":\"copies=9\",\"members\":[]}", -EPROTO },
		{ "group/1", "{\"version\":1,\"scheme\":\"copies=2\",\"members\":[7]}", -EPROTO },
		{ "table/copies=2", "{\"first\":1000,\"count\":100}", -EPROTO },
		{ "volume/v", "{\"scheme\":\"copies=2\"}", -EPROTO },
		{ "pool", "{\"format\":1}", -EPROTO },
		{ "pool", "{\"format\":2}", -EPROTONOSUPPORT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_pool_put remove = { .key = cases[i].key,
						.expected = WEIR_POOL_ANY_VERSION };
		struct weir_error error;

		put_pool();
		store_suite_put(store, cases[i].key, cases[i].value);
		assert_int_equal(weir_pool_client_read(client, map, &error), cases[i].rc);
		if (cases[i].rc == -EPROTO)
			assert_non_null(strstr(error.text, cases[i].key));
		assert_int_equal(weir_pool_store_put(store, &remove, NULL, NULL), 0);
	}
}

static void a_volume_has_one_client(void **state)
{
	struct weir_pool_client *other;
	struct weir_error error;

	(void)state;
	put_pool();
	put_donors();
	put_volume("v");
	assert_int_equal(weir_pool_client_open(where, &other, NULL), 0);
	assert_int_equal(weir_pool_client_open_volume(client, "w", map, &error), -ENOENT);
	assert_non_null(strstr(error.text, "no volume w"));
	assert_int_equal(weir_pool_client_open_volume(client, "v", map, NULL), 0);
	assert_false(map->volume[0].is_blank);
	assert_true(map->volume[0].holder > 0);
	assert_int_equal(weir_pool_client_keep(client, NULL), 0);
	assert_int_equal(weir_pool_client_open_volume(other, "v", map, &error), -EBUSY);
	weir_pool_client_close(client);
	assert_int_equal(weir_pool_client_open_volume(other, "v", map, NULL), 0);
	client = other;
}

static void a_donor_that_rebuilds_gives_way_to_a_client(void **state)
{
	struct weir_pool_client *donor, *second;
	uint64_t claimed;

	(void)state;
	put_pool();
	put_donors();
	put_volume("v");
	assert_int_equal(weir_pool_client_open(where, &donor, NULL), 0);
	assert_int_equal(weir_pool_client_open(where, &second, NULL), 0);
	assert_int_equal(weir_pool_client_open_rebuild(donor, "v", map, NULL), 0);
	assert_true(map->volume[0].is_rebuilding);
	claimed = weir_pool_client_claimed(donor);
	assert_int_equal(weir_pool_client_epoch(donor), claimed);
	assert_int_equal(weir_pool_client_confirm(second, "v", claimed, NULL), 0);
	assert_int_equal(weir_pool_client_open_rebuild(second, "v", map, NULL), -EBUSY);
	assert_int_equal(weir_pool_client_report_progress(donor, 41, "b", NULL), 0);
	read_map();
	assert_int_equal(map->volume[0].progress, 41);
	assert_string_equal(map->donor[map->volume[0].filled].id, "b");

	assert_int_equal(weir_pool_client_open_volume(client, "v", map, NULL), 0);
	assert_false(map->volume[0].is_rebuilding);
	assert_true(weir_pool_client_epoch(client) > claimed);
	assert_int_equal(weir_pool_client_confirm(second, "v", claimed, NULL), -ESTALE);
	/* A late report of the donor would be about bytes that the client has changed. */
	assert_int_equal(weir_pool_client_report_synced(donor, 4, "b", 2, NULL), -EAGAIN);
	assert_int_equal(weir_pool_client_report_progress(donor, 50, "b", NULL), -EAGAIN);
	assert_int_equal(weir_pool_client_report_synced(client, 4, "b", 2, NULL), 0);
	weir_pool_client_close(donor);
	assert_int_equal(weir_pool_client_keep(client, NULL), 0);
	read_map();
	assert_int_equal(map->volume[0].holder, weir_pool_client_claimed(client));
	assert_int_equal(map->volume[0].filled, WEIR_POOL_NO_DONOR);
	assert_int_equal(weir_pool_client_open_rebuild(second, "v", map, NULL), -EBUSY);
	weir_pool_client_close(second);
}

static void wrong_bytes_are_counted_for_their_memory(void **state)
{
	struct weir_pool_client *donor;

	(void)state;
	put_pool();
	put_donors();
	put_volume("v");
	assert_int_equal(weir_pool_client_open(where, &donor, NULL), 0);
	assert_int_equal(weir_pool_client_open_rebuild(donor, "v", map, NULL), 0);
	assert_int_equal(weir_pool_client_report_wrong(donor, "b", 2, 5, NULL), 0);
	assert_int_equal(weir_pool_client_report_wrong(donor, "b", 2, 2, NULL), 0);
	read_map();
	assert_int_equal(map->donor[1].wrong_reads, 7);
	assert_int_equal(map->donor[0].wrong_reads, 0);
	/* Of another incarnation nothing is known yet. */
	assert_int_equal(weir_pool_client_report_wrong(donor, "b", 3, 1, NULL), 0);
	read_map();
	assert_int_equal(map->donor[1].wrong_reads, 0);
	assert_int_equal(weir_pool_client_open_volume(client, "v", map, NULL), 0);
	assert_int_equal(weir_pool_client_report_wrong(donor, "b", 2, 1, NULL), -EAGAIN);
	weir_pool_client_close(donor);
}

static void a_volume_waits_for_its_groups(void **state)
{
	struct weir_pool_put remove = { .key = "group/5", .expected = WEIR_POOL_ANY_VERSION };
	struct weir_error error;

	(void)state;
	put_pool();
	put_volume("v");
	assert_int_equal(weir_pool_store_put(store, &remove, NULL, NULL), 0);
	assert_int_equal(weir_pool_client_open_volume(client, "v", map, &error), -EAGAIN);
	assert_non_null(strstr(error.text, "2 failure domains"));
}

static void a_failed_donor_is_reported_once(void **state)
{
	uint64_t revision;

	(void)state;
	put_pool();
	put_donors();
	assert_int_equal(weir_pool_client_report_failed(client, "a", 1, NULL), 0);
	read_map();
	assert_int_equal(map->donor[0].failed, 1);
	revision = map->revision;
	assert_int_equal(weir_pool_client_report_failed(client, "a", 1, NULL), 0);
	read_map();
	assert_int_equal(map->revision, revision);
	assert_int_equal(weir_pool_client_report_failed(client, "a", 2, NULL), 0);
	read_map();
	assert_int_equal(map->donor[0].failed, 2);
}

static void reports_of_synced_members_are_counted_by_volume(void **state)
{
	struct weir_pool_client *other;

	(void)state;
	put_pool();
	put_donors();
	put_volume("v");
	put_volume("w");
	assert_int_equal(weir_pool_client_open(where, &other, NULL), 0);
	assert_int_equal(weir_pool_client_open_volume(client, "v", map, NULL), 0);
	assert_int_equal(weir_pool_client_open_volume(other, "w", map, NULL), 0);
	assert_int_equal(weir_pool_client_report_synced(client, 4, "b", 2, NULL), 0);
	assert_int_equal(weir_pool_client_report_synced(client, 4, "b", 2, NULL), 0);
	assert_int_equal(weir_pool_client_report_synced(client, 5, "b", 1, NULL), 0);
	read_map();
	assert_int_equal(map->group[4].member[0].synced[0], 0);
	assert_int_equal(map->group[4].member[1].synced[0], 1);
	assert_int_equal(map->group[5].member[1].synced[0], 0);
	assert_int_equal(weir_pool_client_report_synced(other, 4, "b", 2, NULL), 0);
	read_map();
	assert_int_equal(map->group[4].member[1].synced[0], 3);
	weir_pool_client_close(other);
}

static void a_name_stands_for_a_place(void **state)
{
	struct weir_pool_client *named = NULL;
	struct weir_error error;
	char path[256];
	FILE *file;

	(void)state;
	put_pool();
	setenv("WEIR_POOLS", folder, 1);
	assert_int_equal(weir_pool_client_open("pool:mine", &named, &error), -ENOENT);
	assert_non_null(strstr(error.text, folder));
	assert_int_equal(weir_pool_client_open("no/name", &named, &error), -EINVAL);
	snprintf(path, sizeof(path), "%s/mine", folder);
	file = fopen(path, "w");
	fprintf(file, "%s\n", where);
	fclose(file);
	assert_int_equal(weir_pool_client_open("pool:mine", &named, &error), 0);
	assert_int_equal(weir_pool_client_read(named, map, NULL), 0);
	weir_pool_client_close(named);
	assert_int_equal(weir_pool_client_open("mine", &named, &error), 0);
	weir_pool_client_close(named);
	unsetenv("WEIR_POOLS");
}

static int lead(struct weir_pool_lead *lead, const char *name, uint64_t lease)
{
	unsigned int changes;
	int rc = weir_pool_client_read(client, map, NULL);

	return rc ? rc : weir_pool_lead_run(lead, client, map, name, lease, false, &changes, NULL);
}

static void a_leader_that_is_reported_gives_way(void **state)
{
	struct weir_pool_lead *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	uint64_t lease_a, lease_b;

	(void)state;
	put_pool();
	put_donors();
	assert_int_equal(weir_pool_store_grant(store, 60000, &lease_a, NULL), 0);
	assert_int_equal(weir_pool_store_grant(store, 60000, &lease_b, NULL), 0);
	assert_int_equal(lead(a, "a", lease_a), 0);
	assert_int_equal(lead(b, "b", lease_b), 0);
	assert_true(a->token && !b->token);
	assert_int_equal(weir_pool_client_report_failed(client, "a", 0xff00000000000001, NULL), 0);
	assert_int_equal(lead(b, "b", lease_b), 0);
	assert_true(b->token);
	assert_int_equal(lead(a, "a", lease_a), 0);
	assert_false(a->token);
	/* The end of the first leader's lease changes nothing. */
	assert_int_equal(weir_pool_store_revoke(store, lease_a, NULL), 0);
	assert_int_equal(weir_pool_client_read(client, map, NULL), 0);
	assert_int_equal(map->leader, weir_pool_map_donor(map, "b"));
	assert_int_equal(map->leader_stored, b->token);
	free(a);
	free(b);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pool_that_does_not_exist_is_named),
		TEST(keys_become_a_map),
		TEST(values_survive_a_round_trip),
		TEST(a_damaged_key_is_named),
		TEST(a_volume_has_one_client),
		TEST(a_donor_that_rebuilds_gives_way_to_a_client),
		TEST(wrong_bytes_are_counted_for_their_memory),
		TEST(a_volume_waits_for_its_groups),
		TEST(a_failed_donor_is_reported_once),
		TEST(a_leader_that_is_reported_gives_way),
		TEST(reports_of_synced_members_are_counted_by_volume),
		TEST(a_name_stands_for_a_place),
	};
	char command[64];
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) || failed;
}
