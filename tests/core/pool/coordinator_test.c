/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: core pool coordinator; suites: core pool */
/* The coordinator's decisions, one at a time, and the table of groups that it makes. */
#include "core/pool/balance.h"
#include "core/pool/coordinator.h"
#include "core/pool/placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define LEASE_MS 5000
#define REPLACE_MS 30000
#define MS 1000000ull
#define LATER_NS (1000000 * MS) /* leases are judged, and no OUT member has waited yet */

static struct weir_pool_map *map;
static struct weir_pool_coordinator *c;
static uint64_t now_ns;

static int begin(void **state)
{
	(void)state;
	map = calloc(1, sizeof(*map));
	c = calloc(1, sizeof(*c));
	assert_non_null(map);
	assert_non_null(c);
	weir_pool_map_init(map);
	map->lease_ms = LEASE_MS;
	map->replace_ms = REPLACE_MS;
	map->table_groups = 64;
	weir_pool_coordinator_begin(c, LEASE_MS, 0);
	now_ns = LATER_NS;
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(map);
	free(c);
	return 0;
}

/* Donor @index: "a", "b" ..., in its own domain unless told. */
static struct weir_pool_donor *add_donor(const char *id, const char *domain)
{
	static uint64_t incarnations = 100;
	struct weir_pool_donor *donor = &map->donor[weir_pool_map_add_donor(map, id)];

	memcpy(donor->domain, domain, strlen(domain) + 1);
	donor->bytes = 1ull << 30;
	donor->incarnation = ++incarnations;
	return donor;
}

static void add_volume(uint8_t data, uint8_t spare)
{
	struct weir_pool_volume *volume = &map->volume[map->nr_volumes++];

	*volume = (struct weir_pool_volume){ .bytes = 1, .extent_bytes = 1, .is_blank = true };
	volume->name[0] = (char)('u' + map->nr_volumes);
	volume->scheme = (struct weir_pool_scheme){ data, spare };
}

/* Makes all changes that are due, as a host with a perfect store. Return: their number. */
static unsigned int settle(void)
{
	struct weir_pool_op op;
	unsigned int changes = 0;

	while (weir_pool_coordinator_next(c, map, now_ns, 1234, &op)) {
		weir_pool_coordinator_did(map, &op, ++map->revision);
		assert_true(++changes < 10000);
	}
	return changes;
}

static void make_pool(unsigned int donors, uint8_t data, uint8_t spare)
{
	char id[] = "a", domain[] = "ra";

	for (unsigned int i = 0; i < donors; i++, id[0]++, domain[1]++)
		add_donor(id, domain);
	add_volume(data, spare);
	settle();
}

static unsigned int count_members(uint16_t donor, enum weir_pool_member_state state)
{
	unsigned int count = 0;

	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		for (uint8_t j = 0; j < map->group[i].nr_members; j++)
			count += map->group[i].member[j].donor == donor &&
				 map->group[i].member[j].state == state;
	}
	return count;
}

/* Each volume with data reports all SYNCING members. */
static void report_synced(void)
{
	for (uint16_t i = 0; i < weir_pool_map_groups(map); i++) {
		for (uint8_t j = 0; j < map->group[i].nr_members; j++)
			map->group[i].member[j].synced[0] = (1ull << map->nr_volumes) - 1;
	}
}

static void a_table_is_even(void **state)
{
	(void)state;
	make_pool(6, 1, 1);
	assert_int_equal(weir_pool_map_groups(map), 64);
	for (uint16_t i = 0; i < 6; i++)
		assert_in_range(count_members(i, WEIR_POOL_SERVING), 21, 22);
	/* Each pair of 15 shares 64 / 15 groups: so five donors rebuild one that fails. */
	for (uint16_t a = 0; a < 6; a++) {
		for (uint16_t b = 0; b < a; b++) {
			unsigned int shared = 0;

			for (uint16_t g = 0; g < 64; g++) {
				const struct weir_pool_member *m = map->group[g].member;

				shared += (m[0].donor == a && m[1].donor == b) ||
					  (m[0].donor == b && m[1].donor == a);
			}
			assert_in_range(shared, 4, 5);
		}
	}
}

static void a_large_donor_gets_more(void **state)
{
	(void)state;
	add_donor("a", "r1")->bytes = 4ull << 30;
	add_donor("b", "r2")->bytes = 4ull << 30;
	add_donor("c", "r3");
	add_volume(1, 1);
	settle();
	assert_in_range(count_members(2, WEIR_POOL_SERVING), 10, 18);
}

static void a_table_does_not_depend_on_the_order_of_donors(void **state)
{
	struct weir_pool_group group;

	(void)state;
	make_pool(5, 1, 2);
	for (uint16_t g = 0; g < 64; g++) {
		struct weir_pool_map *other = calloc(1, sizeof(*other));

		*other = *map;
		for (uint16_t i = 0; i < 5; i++)
			other->donor[i] = map->donor[4 - i];
		for (uint16_t i = 0; i < g; i++) {
			for (uint8_t j = 0; j < 3; j++)
				other->group[i].member[j].donor =
					4 - other->group[i].member[j].donor;
		}
		for (uint16_t i = g; i < 64; i++)
			other->group[i].version = 0;
		assert_int_equal(weir_pool_placement_make(other, g, map->group[g].scheme, &group),
				 0);
		for (uint8_t j = 0; j < 3; j++)
			assert_int_equal(4 - group.member[j].donor, map->group[g].member[j].donor);
		free(other);
	}
}

static void groups_wait_for_enough_domains(void **state)
{
	(void)state;
	add_donor("a", "r1");
	add_donor("b", "r1");
	add_volume(1, 1);
	settle();
	assert_int_equal(map->nr_tables, 1);
	assert_false(weir_pool_map_is_ready(map, map->volume[0].scheme));
	add_donor("c", "r2");
	settle();
	assert_true(weir_pool_map_is_ready(map, map->volume[0].scheme));
}

static void a_donor_without_a_lease_is_out(void **state)
{
	uint64_t versions[64];
	unsigned int changes;

	(void)state;
	make_pool(3, 1, 1);
	map->volume[0].is_blank = false;
	for (uint16_t g = 0; g < 64; g++)
		versions[g] = map->group[g].version;
	map->donor[0].incarnation = 0;
	changes = settle();
	assert_int_equal(count_members(0, WEIR_POOL_OUT), changes);
	assert_true(changes > 0);
	assert_int_equal(count_members(0, WEIR_POOL_SERVING), 0);
	for (uint16_t g = 0; g < 64; g++) {
		bool was_member = !weir_pool_group_is_whole(&map->group[g]);

		assert_int_equal(map->group[g].version, versions[g] + was_member);
		assert_int_equal(map->group[g].lean_ms, was_member ? 1234 : 0);
	}
	assert_int_equal(settle(), 0);
}

static void nobody_is_judged_right_after_an_election(void **state)
{
	(void)state;
	make_pool(3, 1, 1);
	weir_pool_coordinator_begin(c, LEASE_MS, now_ns);
	map->donor[0].incarnation = 0;
	assert_int_equal(settle(), 0);
	assert_int_equal(weir_pool_coordinator_deadline_ns(c, map, now_ns),
			 now_ns + LEASE_MS * MS / 2);
	now_ns += LEASE_MS * MS / 2;
	assert_true(settle() > 0);
}

static void a_reported_donor_is_out_before_its_lease_is(void **state)
{
	(void)state;
	make_pool(3, 1, 1);
	map->volume[0].is_blank = false;
	map->donor[1].failed = map->donor[1].incarnation;
	assert_true(settle() > 0);
	assert_int_equal(count_members(1, WEIR_POOL_SERVING), 0);
	assert_int_equal(map->donor[1].failed, map->donor[1].incarnation);
	assert_true(weir_pool_map_may_restart(map, 1, map->donor[1].incarnation));
	map->donor[1].incarnation += 1000;
	assert_true(settle() > 0);
	assert_int_equal(map->donor[1].failed, 0);
	assert_true(count_members(1, WEIR_POOL_SYNCING) > 0);
	assert_int_equal(count_members(1, WEIR_POOL_OUT), 0);
}

static void the_last_member_stays_until_its_memory_is_gone(void **state)
{
	(void)state;
	make_pool(2, 1, 1);
	map->volume[0].is_blank = false;
	map->donor[0].incarnation = 0;
	settle();
	map->donor[1].failed = map->donor[1].incarnation;
	assert_int_equal(settle(), 0);
	map->donor[1].failed = 0;
	map->donor[1].incarnation = 0;
	assert_int_equal(settle(), 0);
	assert_int_equal(count_members(1, WEIR_POOL_SERVING), 64);
	map->donor[1].incarnation = 9999;
	assert_int_equal(settle(), 64);
	assert_true(weir_pool_group_is_lost(&map->group[0]));
	/* Lost data is not replaced by empty memory while a volume has data there. */
	map->donor[0].incarnation = 8888;
	assert_int_equal(settle(), 0);
	map->nr_volumes = 0;
	settle();
	assert_true(weir_pool_group_is_whole(&map->group[0]));
}

static void a_donor_that_returns_gets_its_place_and_must_be_synced(void **state)
{
	unsigned int places;

	(void)state;
	make_pool(3, 1, 1);
	add_volume(1, 1);
	map->volume[0].is_blank = map->volume[1].is_blank = false;
	map->donor[0].incarnation = 0;
	settle();
	places = count_members(0, WEIR_POOL_OUT);
	map->donor[0].incarnation = 4321;
	settle();
	assert_int_equal(count_members(0, WEIR_POOL_SYNCING), places);
	for (uint16_t g = 0; g < 64; g++) {
		for (uint8_t j = 0; j < 2; j++)
			map->group[g].member[j].synced[0] = 1;
	}
	assert_int_equal(settle(), 0);
	report_synced();
	assert_int_equal(settle(), places);
	assert_int_equal(count_members(0, WEIR_POOL_SERVING), places);
	assert_int_equal(map->group[0].lean_ms, 0);
}

/* Between the read and now, a client may have opened a blank volume. */
static void a_member_is_promoted_by_a_newer_map_only(void **state)
{
	struct weir_pool_op op;

	(void)state;
	make_pool(2, 1, 1);
	map->donor[0].incarnation = 4321;
	assert_true(weir_pool_coordinator_next(c, map, now_ns, 1, &op));
	weir_pool_coordinator_did(map, &op, map->revision + 1);
	assert_int_equal(weir_pool_group_count(&map->group[0], WEIR_POOL_SYNCING), 1);
	while (weir_pool_coordinator_next(c, map, now_ns, 1, &op)) {
		assert_int_not_equal(op.index, 0);
		weir_pool_coordinator_did(map, &op, map->revision + 1);
	}
	map->revision++;
	settle();
	assert_true(weir_pool_group_is_whole(&map->group[0]));
}

static void another_donor_gets_the_place_after_a_while(void **state)
{
	(void)state;
	make_pool(3, 1, 1);
	map->volume[0].is_blank = false;
	map->donor[0].incarnation = 0;
	settle();
	assert_int_equal(weir_pool_coordinator_deadline_ns(c, map, now_ns),
			 now_ns + REPLACE_MS * MS);
	now_ns += REPLACE_MS * MS - 1;
	assert_int_equal(settle(), 0);
	now_ns++;
	assert_true(settle() > 0);
	assert_int_equal(count_members(0, WEIR_POOL_OUT), 0);
	report_synced();
	settle();
	for (uint16_t g = 0; g < 64; g++)
		assert_true(weir_pool_group_is_whole(&map->group[g]));
	assert_int_equal(weir_pool_coordinator_deadline_ns(c, map, now_ns), WEIR_POOL_NEVER);
}

static void an_incarnation_that_is_out_does_not_come_back(void **state)
{
	uint64_t incarnation;
	unsigned int places;

	(void)state;
	make_pool(3, 1, 1);
	map->volume[0].is_blank = false;
	incarnation = map->donor[0].incarnation;
	map->donor[0].incarnation = 0;
	settle();
	places = count_members(0, WEIR_POOL_OUT);
	map->donor[0].incarnation = incarnation;
	now_ns += 2 * REPLACE_MS * MS;
	settle();
	report_synced();
	settle();
	for (uint16_t g = 0; g < 64; g++)
		assert_true(weir_pool_group_is_whole(&map->group[g]));
	assert_int_equal(count_members(0, WEIR_POOL_OUT), places);
	assert_true(weir_pool_map_may_restart(map, 0, incarnation));
	map->donor[0].incarnation = 7777;
	settle();
	assert_int_equal(count_members(0, WEIR_POOL_OUT), 0);
}

static void a_drained_donor_serves_until_others_have_its_data(void **state)
{
	unsigned int serving;

	(void)state;
	make_pool(4, 2, 1);
	map->volume[0].is_blank = false;
	serving = count_members(3, WEIR_POOL_SERVING);
	map->donor[3].is_draining = true;
	settle();
	assert_int_equal(count_members(3, WEIR_POOL_SERVING), serving);
	report_synced();
	settle();
	assert_int_equal(count_members(3, WEIR_POOL_SERVING), 0);
	for (uint16_t g = 0; g < 64; g++) {
		assert_true(weir_pool_group_is_whole(&map->group[g]));
		assert_int_equal(map->group[g].nr_members, 3);
	}
	map->donor[0].incarnation = 0;
	settle();
	now_ns += 2 * REPLACE_MS * MS;
	settle();
	assert_int_equal(count_members(3, WEIR_POOL_SYNCING), 0);
}

static void a_donor_cannot_be_drained_without_another_domain(void **state)
{
	(void)state;
	make_pool(2, 1, 1);
	map->volume[0].is_blank = false;
	map->donor[1].is_draining = true;
	assert_int_equal(settle(), 0);
	assert_int_equal(count_members(1, WEIR_POOL_SERVING), 64);
}

static void each_scheme_has_a_table(void **state)
{
	(void)state;
	make_pool(4, 1, 1);
	add_volume(2, 1);
	add_volume(1, 1);
	settle();
	assert_int_equal(map->nr_tables, 2);
	assert_int_equal(map->table[1].first, 64);
	assert_int_equal(map->table[1].count, 64);
	assert_true(weir_pool_map_is_ready(map, map->volume[1].scheme));
	assert_int_equal(map->group[64].nr_members, 3);
}

static void schemes_beyond_the_last_group_get_no_table(void **state)
{
	(void)state;
	map->table_groups = 1000;
	make_pool(4, 1, 1);
	add_volume(2, 1);
	assert_int_equal(settle(), 0);
	assert_int_equal(map->nr_tables, 1);
}

/* Makes all moves, some at a time, and lets the new members get the data. Return: their number. */
static unsigned int rebalance(void)
{
	struct weir_pool_op op;
	unsigned int moves = 0;

	while (weir_pool_balance_next(map, &op)) {
		for (int i = 0; i < 3 && weir_pool_balance_next(map, &op); i++, moves++)
			weir_pool_coordinator_did(map, &op, ++map->revision);
		assert_true(weir_pool_balance_moving(map) > 0 && moves < 1000);
		settle();
		for (uint16_t g = 0; g < 64; g++)
			assert_true(weir_pool_group_is_whole(&map->group[g]));
		report_synced();
		settle();
	}
	assert_int_equal(weir_pool_balance_moving(map), 0);
	return moves;
}

static void places_move_to_a_new_donor_that_may_have_them(void **state)
{
	struct weir_pool_op op;

	(void)state;
	make_pool(4, 1, 1);
	map->volume[0].is_blank = false;
	assert_int_equal(rebalance(), 0);
	add_donor("e", "re");
	assert_int_equal(settle(), 0);
	/* Of 128 places, a fifth. */
	assert_in_range(rebalance(), 24, 27);
	for (uint16_t d = 0; d < 5; d++)
		assert_in_range(count_members(d, WEIR_POOL_SERVING), 24, 28);
	for (uint16_t g = 0; g < 64; g++)
		assert_int_equal(map->group[g].nr_members, 2);
	/* A donor that lends twice as much gets twice as many. */
	add_donor("f", "rf")->bytes = 2ull << 30;
	rebalance();
	assert_in_range(count_members(5, WEIR_POOL_SERVING), 34, 38);
	/* Not to a draining donor, nor from a group that lacks a member. */
	add_donor("g", "rg")->is_draining = true;
	assert_int_equal(rebalance(), 0);
	map->donor[6].is_draining = false;
	for (uint16_t g = 0; g < 64; g++)
		map->group[g].member[0].state = WEIR_POOL_SYNCING;
	assert_false(weir_pool_balance_next(map, &op));
}

static void places_stay_where_domains_leave_no_room(void **state)
{
	(void)state;
	make_pool(2, 1, 1);
	add_donor("c", "ra");
	/* A copy in each of two domains: donors a and c share one. */
	rebalance();
	assert_in_range(count_members(0, WEIR_POOL_SERVING), 31, 33);
	assert_in_range(count_members(2, WEIR_POOL_SERVING), 31, 33);
	assert_int_equal(count_members(1, WEIR_POOL_SERVING), 64);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_table_is_even),
		TEST(a_large_donor_gets_more),
		TEST(a_table_does_not_depend_on_the_order_of_donors),
		TEST(groups_wait_for_enough_domains),
		TEST(a_donor_without_a_lease_is_out),
		TEST(nobody_is_judged_right_after_an_election),
		TEST(a_reported_donor_is_out_before_its_lease_is),
		TEST(the_last_member_stays_until_its_memory_is_gone),
		TEST(a_donor_that_returns_gets_its_place_and_must_be_synced),
		TEST(a_member_is_promoted_by_a_newer_map_only),
		TEST(another_donor_gets_the_place_after_a_while),
		TEST(an_incarnation_that_is_out_does_not_come_back),
		TEST(a_drained_donor_serves_until_others_have_its_data),
		TEST(a_donor_cannot_be_drained_without_another_domain),
		TEST(places_move_to_a_new_donor_that_may_have_them),
		TEST(places_stay_where_domains_leave_no_room),
		TEST(each_scheme_has_a_table),
		TEST(schemes_beyond_the_last_group_get_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
