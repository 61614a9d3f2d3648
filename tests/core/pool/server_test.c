/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: core pool server; suites: core pool */
/* Whose turn it is to serve the files of a volume, and from when on. */
#include "core/pool/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define DONORS 5u
#define SINCE_NS 1000u
#define NEVER UINT64_MAX

static const char *const names[DONORS] = { "a", "b", "c", "d", "e" };
static struct weir_pool_map *map;
static struct weir_pool_volume *volume;

static int begin(void **state)
{
	const struct weir_pool_scheme scheme = { 1, 1 };

	(void)state;
	map = calloc(1, sizeof(*map));
	weir_pool_map_init(map);
	map->stored = 1;
	for (unsigned int i = 0; i < DONORS; i++)
		map->donor[weir_pool_map_add_donor(map, names[i])].incarnation = 100 + i;
	map->table[map->nr_tables++] = (struct weir_pool_table){ scheme, 0, 1 };
	map->group[0].version = 1;
	map->group[0].scheme = scheme;
	volume = &map->volume[map->nr_volumes++];
	*volume = (struct weir_pool_volume){ .name = "v", .id = 77, .is_files = true,
					     .scheme = scheme };
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(map);
	return 0;
}

static uint64_t from_ns(unsigned int donor)
{
	return weir_pool_server_from_ns(map, volume, names[donor], 100 + donor, SINCE_NS);
}

/* Donor @donor serves the volume. */
static void serve(unsigned int donor)
{
	volume->holder = volume->server_claim = 9;
	volume->server_incarnation = 100 + donor;
	memcpy(volume->server, names[donor], 2);
}

/* Return: the donors' turns, a bit for each; each turn has one donor. */
static unsigned int turns_of(unsigned int *donors)
{
	unsigned int turns = 0;

	*donors = 0;
	for (unsigned int i = 0; i < DONORS; i++) {
		uint64_t turn = (from_ns(i) - SINCE_NS) / WEIR_POOL_SERVER_RANK_NS;

		if (from_ns(i) == NEVER)
			continue;
		assert_int_equal((from_ns(i) - SINCE_NS) % WEIR_POOL_SERVER_RANK_NS, 0);
		assert_int_equal(turns >> turn & 1, 0);
		turns |= 1u << turn;
		++*donors;
	}
	return turns;
}

static void each_donor_has_a_turn_of_its_own(void **state)
{
	unsigned int donors;

	(void)state;
	assert_true(weir_pool_server_is_missing(map, volume));
	assert_int_equal(turns_of(&donors), (1u << DONORS) - 1);
}

static void the_turns_of_the_others_have_no_gap(void **state)
{
	unsigned int donors;

	(void)state;
	map->donor[0].is_draining = true;
	map->donor[1].failed = 101;
	map->donor[2].incarnation = 0;
	assert_int_equal(turns_of(&donors), 3);
	assert_int_equal(donors, 2);
	assert_true(from_ns(0) == NEVER && from_ns(1) == NEVER && from_ns(2) == NEVER);
	/* The process that had the name before. */
	assert_true(weir_pool_server_from_ns(map, volume, "d", 99, SINCE_NS) == NEVER);
	assert_true(weir_pool_server_from_ns(map, volume, "x", 99, SINCE_NS) == NEVER);
}

static void two_volumes_have_two_orders(void **state)
{
	unsigned int orders = 0, donors, firsts = 0;

	(void)state;
	for (volume->id = 1; volume->id <= 64; volume->id++) {
		assert_int_equal(turns_of(&donors), (1u << DONORS) - 1);
		for (unsigned int i = 0; i < DONORS; i++) {
			if (from_ns(i) == SINCE_NS)
				firsts |= 1u << i;
		}
		orders++;
	}
	assert_int_equal(orders, 64);
	assert_int_equal(firsts, (1u << DONORS) - 1);
}

static void a_server_that_mounts_reach_is_not_missing(void **state)
{
	(void)state;
	serve(1);
	assert_false(weir_pool_server_is_missing(map, volume));
	volume->server_claim = 8; /* another claims it, and is on its way */
	assert_false(weir_pool_server_is_missing(map, volume));
	volume->is_rebuilding = true;
	assert_true(weir_pool_server_is_missing(map, volume));
}

static void a_server_that_a_mount_suspects_gives_way_to_others(void **state)
{
	unsigned int donors;

	(void)state;
	serve(1);
	volume->suspect = volume->holder;
	assert_true(weir_pool_server_is_missing(map, volume));
	assert_true(from_ns(1) == NEVER);
	assert_int_equal(turns_of(&donors), (1u << (DONORS - 1)) - 1);
}

static void a_server_whose_donor_is_reported_or_gone_is_missing(void **state)
{
	(void)state;
	serve(1);
	map->donor[1].failed = 101;
	assert_true(weir_pool_server_is_missing(map, volume));
	map->donor[1].failed = 0;
	assert_false(weir_pool_server_is_missing(map, volume));
	map->donor[1].incarnation = 0;
	assert_true(weir_pool_server_is_missing(map, volume));
}

static void other_volumes_and_unmade_groups_have_no_server(void **state)
{
	(void)state;
	volume->is_files = false;
	assert_false(weir_pool_server_is_missing(map, volume));
	volume->is_files = true;
	map->group[0].version = 0;
	assert_false(weir_pool_server_is_missing(map, volume));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(each_donor_has_a_turn_of_its_own),
		TEST(the_turns_of_the_others_have_no_gap),
		TEST(two_volumes_have_two_orders),
		TEST(a_server_that_mounts_reach_is_not_missing),
		TEST(a_server_that_a_mount_suspects_gives_way_to_others),
		TEST(a_server_whose_donor_is_reported_or_gone_is_missing),
		TEST(other_volumes_and_unmade_groups_have_no_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
