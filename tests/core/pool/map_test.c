/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: core pool map; suites: core pool */
/* The map of a pool: schemes, names, where extents lie, and when a donor may restart. */
#include "core/pool/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static struct weir_pool_map *map;

static int begin(void **state)
{
	(void)state;
	map = calloc(1, sizeof(*map));
	assert_non_null(map);
	weir_pool_map_init(map);
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(map);
	return 0;
}

static void add_table(struct weir_pool_scheme scheme, uint16_t first, uint16_t count)
{
	map->table[map->nr_tables++] = (struct weir_pool_table){ scheme, first, count };
}

static void schemes_are_read_and_written(void **state)
{
	static const struct {
		const char *text;
		int rc;
		uint8_t data, spare;
	} cases[] = {
		{ "copies=1", 0, 1, 0 },
		{ "copies=2", 0, 1, 1 },
		{ "copies=4", 0, 1, 3 },
		{ "copies=0", -ERANGE, 0, 0 },
		{ "copies=5", -ERANGE, 0, 0 },
		{ "copies=22", -EINVAL, 0, 0 },
		{ "copies=2 ", -EINVAL, 0, 0 },
		{ "copies=", -EINVAL, 0, 0 },
		{ "code=4+2", 0, 4, 2 },
		{ "code=6+2", 0, 6, 2 },
		{ "code=7+2", -ERANGE, 0, 0 },
		{ "code=1+1", -ERANGE, 0, 0 },
		{ "code=4+0", -ERANGE, 0, 0 },
		{ "code=4", -EINVAL, 0, 0 },
		{ "code=4+2+1", -EINVAL, 0, 0 },
		{ "", -EINVAL, 0, 0 },
		{ "raid6", -EINVAL, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_pool_scheme scheme = { 9, 9 };

		assert_int_equal(weir_pool_scheme_parse(cases[i].text, &scheme), cases[i].rc);
		if (cases[i].rc) {
			assert_int_equal(scheme.data, 9);
			continue;
		}
		assert_int_equal(scheme.data, cases[i].data);
		assert_int_equal(scheme.spare, cases[i].spare);
		assert_string_equal(weir_pool_scheme_format(scheme).text, cases[i].text);
	}
}

static void names_have_letters_digits_and_few_signs(void **state)
{
	char longest[WEIR_POOL_NAME_MAX], longer[WEIR_POOL_NAME_MAX + 1];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	assert_true(weir_pool_map_is_name("rack1"));
	assert_true(weir_pool_map_is_name("[fe80::1]:7474"));
	assert_true(weir_pool_map_is_name(longest));
	assert_false(weir_pool_map_is_name(longer));
	assert_false(weir_pool_map_is_name(""));
	assert_false(weir_pool_map_is_name("a/b"));
	assert_false(weir_pool_map_is_name("a b"));
}

static void a_donor_is_added_once(void **state)
{
	char name[WEIR_POOL_NAME_MAX] = "d00";

	(void)state;
	assert_int_equal(weir_pool_map_donor(map, "d00"), WEIR_POOL_NO_DONOR);
	for (uint16_t i = 0; i < WEIR_POOL_DONORS_MAX; i++) {
		name[1] = (char)('0' + i / 10);
		name[2] = (char)('0' + i % 10);
		assert_int_equal(weir_pool_map_add_donor(map, name), i);
		assert_int_equal(weir_pool_map_add_donor(map, name), i);
		assert_int_equal(weir_pool_map_donor(map, name), i);
	}
	assert_int_equal(weir_pool_map_add_donor(map, "more"), WEIR_POOL_NO_DONOR);
}

static void domains_count_registered_donors_only(void **state)
{
	static const char *const ids[] = { "a", "b", "c", "d" };
	static const char *const domains[] = { "r1", "r2", "r1", "r3" };

	(void)state;
	for (uint16_t i = 0; i < 4; i++) {
		struct weir_pool_donor *d = &map->donor[weir_pool_map_add_donor(map, ids[i])];

		memcpy(d->domain, domains[i], strlen(domains[i]) + 1);
		d->incarnation = i + 1;
	}
	map->donor[3].incarnation = 0;
	assert_int_equal(weir_pool_map_count_donors(map), 3);
	assert_int_equal(weir_pool_map_count_domains(map), 2);
}

static void each_group_has_one_extent_of_a_round(void **state)
{
	static const uint16_t counts[] = { 1, 2, 7, 64, 1000 };
	struct weir_pool_volume volume = { .scheme = { 1, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		bool seen[WEIR_POOL_GROUPS_MAX];

		map->nr_tables = 0;
		add_table((struct weir_pool_scheme){ 1, 2 }, 0, 5);
		add_table(volume.scheme, 5, counts[i]);
		for (uint64_t round = 0; round < 9; round++) {
			volume.id = round * 0x1234567;
			memset(seen, 0, sizeof(seen));
			for (uint64_t extent = 0; extent < counts[i]; extent++) {
				uint16_t group = weir_pool_map_group(map, &volume,
								     round * counts[i] + extent);

				assert_in_range(group, 5, 5 + counts[i] - 1);
				assert_false(seen[group]);
				seen[group] = true;
			}
		}
	}
}

/* A client of any version must find an extent where an older client has put it. */
static void the_group_of_an_extent_is_fixed_for_ever(void **state)
{
	static const uint16_t expected[] = { 41, 42, 43, 44, 45, 46, 47, 48 };
	struct weir_pool_volume volume = { .id = 42, .scheme = { 1, 1 } };

	(void)state;
	add_table(volume.scheme, 0, 64);
	for (uint64_t extent = 0; extent < 8; extent++)
		assert_int_equal(weir_pool_map_group(map, &volume, extent), expected[extent]);
}

static void add_group(uint16_t number, const struct weir_pool_member *members, uint8_t count)
{
	struct weir_pool_group *group = &map->group[number];

	*group = (struct weir_pool_group){ .version = 1, .scheme = { 1, 1 }, .nr_members = count };
	memcpy(group->member, members, count * sizeof(*members));
}

static void a_table_is_ready_once_all_groups_exist(void **state)
{
	const struct weir_pool_member members[] = { { 0, 0, WEIR_POOL_SERVING, 5 } };
	struct weir_pool_scheme scheme = { 1, 1 };

	(void)state;
	assert_false(weir_pool_map_is_ready(map, scheme));
	add_table(scheme, 3, 2);
	add_group(3, members, 1);
	assert_false(weir_pool_map_is_ready(map, scheme));
	add_group(4, members, 1);
	assert_true(weir_pool_map_is_ready(map, scheme));
	assert_false(weir_pool_group_is_whole(&map->group[3]));
}

static void an_incarnation_restarts_when_out_and_serving_nowhere(void **state)
{
	const struct weir_pool_member both[] = { { 0, 0, WEIR_POOL_SERVING, 5 },
						 { 1, 1, WEIR_POOL_SERVING, 6 } };
	const struct weir_pool_member without[] = { { 0, 0, WEIR_POOL_OUT, 5 },
						    { 1, 1, WEIR_POOL_SERVING, 6 } };
	const struct weir_pool_member neither[] = { { 0, 0, WEIR_POOL_OUT, 5 },
						    { 1, 1, WEIR_POOL_OUT, 6 } };

	(void)state;
	weir_pool_map_add_donor(map, "a");
	weir_pool_map_add_donor(map, "b");
	add_table((struct weir_pool_scheme){ 1, 1 }, 0, 3);
	add_group(0, both, 2);
	assert_false(weir_pool_map_may_restart(map, 0, 5));
	add_group(1, without, 2);
	assert_true(weir_pool_map_is_outcast(map, 0, 5));
	assert_false(weir_pool_map_may_restart(map, 0, 5));
	add_group(0, without, 2);
	assert_true(weir_pool_map_may_restart(map, 0, 5));
	assert_false(weir_pool_map_may_restart(map, 0, 7));
	assert_false(weir_pool_map_may_restart(map, 1, 6));
	map->donor[1].failed = 6;
	assert_false(weir_pool_map_may_restart(map, 1, 6));
	map->group[0].member[1].state = map->group[1].member[1].state = WEIR_POOL_SYNCING;
	assert_false(weir_pool_map_may_restart(map, 1, 6));
	add_group(0, neither, 2);
	add_group(1, neither, 2);
	assert_true(weir_pool_map_may_restart(map, 1, 6));
}

static void a_member_is_present_as_one_incarnation(void **state)
{
	struct weir_pool_member member = { 0, 0, WEIR_POOL_SERVING, 5 };

	(void)state;
	assert_false(weir_pool_map_is_present(map, &member));
	weir_pool_map_add_donor(map, "a");
	assert_false(weir_pool_map_is_present(map, &member));
	map->donor[0].incarnation = 5;
	assert_true(weir_pool_map_is_present(map, &member));
	map->donor[0].incarnation = 6;
	assert_false(weir_pool_map_is_present(map, &member));
}

static void an_opening_waits_for_members_that_may_serve(void **state)
{
	static const struct {
		enum weir_pool_member_state state;
		bool is_synced, was_blank, may_serve;
	} cases[] = {
		{ WEIR_POOL_SERVING, false, false, true },
		{ WEIR_POOL_SYNCING, false, false, false },
		{ WEIR_POOL_SYNCING, true, false, true },
		{ WEIR_POOL_SYNCING, false, true, true },
		{ WEIR_POOL_OUT, true, true, false },
	};

	(void)state;
	map->nr_volumes = 70;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_pool_member member = { .state = (uint8_t)cases[i].state };

		if (cases[i].is_synced)
			weir_pool_member_set_synced(&member, 65);
		assert_int_equal(weir_pool_map_may_serve(map, &member, &map->volume[65],
							 cases[i].was_blank),
				 cases[i].may_serve);
		assert_int_equal(weir_pool_map_may_serve(map, &member, &map->volume[64], false),
				 cases[i].state == WEIR_POOL_SERVING);
	}
}

static void a_reported_leader_gives_way_to_a_donor_that_is_not(void **state)
{
	(void)state;
	assert_true(weir_pool_map_may_lead(map, WEIR_POOL_NO_DONOR));
	map->leader = weir_pool_map_add_donor(map, "a");
	map->leader_stored = 1;
	weir_pool_map_add_donor(map, "b");
	map->donor[1].incarnation = 7;
	assert_false(weir_pool_map_may_lead(map, 1));
	map->donor[0].incarnation = 5;
	map->donor[0].failed = 4;
	assert_false(weir_pool_map_may_lead(map, 1));
	map->donor[0].failed = 5;
	assert_false(weir_pool_map_may_lead(map, 0));
	assert_true(weir_pool_map_may_lead(map, 1));
	map->donor[1].failed = 7;
	assert_false(weir_pool_map_may_lead(map, 1));
	map->leader_stored = 0;
	assert_true(weir_pool_map_may_lead(map, 1));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(schemes_are_read_and_written),
		TEST(names_have_letters_digits_and_few_signs),
		TEST(a_donor_is_added_once),
		TEST(domains_count_registered_donors_only),
		TEST(each_group_has_one_extent_of_a_round),
		TEST(the_group_of_an_extent_is_fixed_for_ever),
		TEST(a_table_is_ready_once_all_groups_exist),
		TEST(an_incarnation_restarts_when_out_and_serving_nowhere),
		TEST(a_member_is_present_as_one_incarnation),
		TEST(an_opening_waits_for_members_that_may_serve),
		TEST(a_reported_leader_gives_way_to_a_donor_that_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
