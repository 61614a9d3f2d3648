/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: core pool rebuild; suites: core pool */
/* Which volume a donor rebuilds next, and when. */
#include "core/pool/rebuild.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define LEASE_MS 1000u
#define HALF_NS 500000000ull
#define VOLUMES 2u
#define SELF 1u /* index of the donor */

static struct weir_pool_map *map;
static struct weir_pool_rebuild *r;

static int begin(void **state)
{
	const struct weir_pool_scheme scheme = { 1, 1 };

	(void)state;
	map = calloc(1, sizeof(*map));
	r = calloc(1, sizeof(*r));
	weir_pool_map_init(map);
	map->lease_ms = LEASE_MS;
	map->donor[weir_pool_map_add_donor(map, "a")].incarnation = 5;
	map->donor[weir_pool_map_add_donor(map, "b")].incarnation = 6;
	r->donor[0] = 'b';
	r->incarnation = 6;
	map->table[map->nr_tables++] = (struct weir_pool_table){ scheme, 0, 1 };
	map->group[0] = (struct weir_pool_group){
		.version = 1,
		.scheme = scheme,
		.nr_members = 2,
		.member = { { 0, 0, WEIR_POOL_SERVING, 5 }, { SELF, 1, WEIR_POOL_SYNCING, 6 } },
	};
	for (map->nr_volumes = 0; map->nr_volumes < VOLUMES; map->nr_volumes++)
		map->volume[map->nr_volumes] = (struct weir_pool_volume){
			.name = { (char)('v' + map->nr_volumes) },
			.id = 1 + map->nr_volumes,
			.stored = 3,
			.scheme = scheme,
		};
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(map);
	free(r);
	return 0;
}

static uint16_t next_at(uint64_t now_ns, uint64_t *due_ns)
{
	*due_ns = UINT64_MAX;
	return weir_pool_rebuild_next(r, map, now_ns, due_ns);
}

/* Asserts that no volume is due at @now_ns, and the next at @due_ns. */
static void assert_waits(uint64_t now_ns, uint64_t due_ns)
{
	uint64_t due;

	assert_int_equal(next_at(now_ns, &due), VOLUMES);
	assert_true(due == due_ns);
}

static void assert_next(uint64_t now_ns, uint16_t volume)
{
	uint64_t due;

	assert_int_equal(next_at(now_ns, &due), volume);
}

static void a_volume_waits_for_half_a_lease_after_its_client(void **state)
{
	(void)state;
	map->volume[1].is_blank = true;
	map->volume[0].holder = 9;
	assert_waits(100, UINT64_MAX);
	map->volume[0].holder = 0;
	assert_waits(200, 100 + HALF_NS);
	/* A client has come and gone between two looks. */
	map->volume[0].stored = 4;
	assert_waits(300, 300 + HALF_NS);
	assert_next(300 + HALF_NS, 0);
}

static void the_turn_of_another_donor_does_not_begin_the_wait_again(void **state)
{
	(void)state;
	map->volume[1].is_blank = true;
	assert_waits(100, 100 + HALF_NS);
	map->volume[0].holder = 9;
	map->volume[0].is_rebuilding = true;
	map->volume[0].stored = 4;
	assert_waits(200, UINT64_MAX);
	map->volume[0].holder = 0;
	map->volume[0].is_rebuilding = false;
	assert_next(100 + HALF_NS, 0);
	weir_pool_rebuild_ended(r, 0, WEIR_POOL_REBUILD_HAS_OTHER, 100 + HALF_NS);
	assert_next(101 + HALF_NS, 0);
}

static void a_failure_lets_the_other_volume_go_first(void **state)
{
	uint64_t at_ns = HALF_NS;

	(void)state;
	assert_waits(0, HALF_NS);
	assert_next(at_ns, 0);
	weir_pool_rebuild_ended(r, 0, WEIR_POOL_REBUILD_FAILED, at_ns);
	assert_next(at_ns, 1);
	map->volume[1].is_blank = true;
	for (unsigned int failures = 1; failures < 6; failures++) {
		uint64_t pause_ns = HALF_NS << (failures < 3 ? failures : 3);

		assert_waits(at_ns, at_ns + pause_ns);
		at_ns += pause_ns;
		assert_next(at_ns, 0);
		weir_pool_rebuild_ended(r, 0, WEIR_POOL_REBUILD_FAILED, at_ns);
	}
	weir_pool_rebuild_ended(r, 0, WEIR_POOL_REBUILD_DONE, at_ns);
	weir_pool_rebuild_ended(r, 0, WEIR_POOL_REBUILD_GAVE_WAY, at_ns);
	assert_waits(at_ns, at_ns + HALF_NS);
}

static void another_volume_in_the_place_starts_anew(void **state)
{
	(void)state;
	map->volume[1].is_blank = true;
	assert_waits(0, HALF_NS);
	weir_pool_rebuild_ended(r, 0, WEIR_POOL_REBUILD_FAILED, HALF_NS);
	map->volume[0].id = 50;
	assert_waits(HALF_NS, 2 * HALF_NS);
}

static void only_own_members_without_data_are_filled(void **state)
{
	struct weir_pool_member *m = &map->group[0].member[1];

	(void)state;
	assert_waits(0, HALF_NS);
	weir_pool_member_set_synced(m, 0);
	assert_next(HALF_NS, 1);
	m->incarnation = 7;
	assert_waits(HALF_NS, UINT64_MAX);
	m->incarnation = 6;
	m->state = WEIR_POOL_SERVING;
	assert_waits(HALF_NS, UINT64_MAX);
	m->state = WEIR_POOL_SYNCING;
	map->group[0].member[0].state = WEIR_POOL_OUT; /* nobody has the data */
	assert_waits(HALF_NS, UINT64_MAX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_volume_waits_for_half_a_lease_after_its_client),
		TEST(the_turn_of_another_donor_does_not_begin_the_wait_again),
		TEST(a_failure_lets_the_other_volume_go_first),
		TEST(another_volume_in_the_place_starts_anew),
		TEST(only_own_members_without_data_are_filled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
