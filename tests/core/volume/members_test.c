/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copies follow the map of a pool: openings, members that leave and join, and writes that wait. */
#include "tests/support/engine_bench.h"
#include "core/volume/members.h"

#define EXTENTS 3u
#define PAGES 10u
#define DONORS 4u
#define ALL ((1u << DONORS) - 1)

struct members_fixture {
	struct weir_extents v;
	struct weir_extent extents[EXTENTS];
	uint32_t sum[EXTENTS][PAGES];
	struct weir_members m;
	struct weir_member_copy copies[EXTENTS * 4];
	struct weir_member_group group[2];
	bool equal[EXTENTS];
	bool has_region[DONORS][EXTENTS];
};

static const uint32_t sums[PAGES] = { 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 };
static const uint16_t group_of[EXTENTS] = { 0, 1, 0 };

static const struct weir_member serving_at_0 = { .joined = 1,
						 .donor = 0,
						 .serves = true,
						 .counts = true };
static const struct weir_member serving_at_1 = { .joined = 2,
						 .donor = 1,
						 .serves = true,
						 .counts = true };
static const struct weir_member serving_at_2 = { .joined = 3,
						 .donor = 2,
						 .serves = true,
						 .counts = true };
static const struct weir_member new_at_3 = { .joined = 9, .donor = 3 };

/* Two groups of two copies, over donors 0 and 1, and 1 and 2. */
static void begin(struct members_fixture *s, bool is_blank)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < EXTENTS; i++)
		s->extents[i].sum = s->sum[i];
	assert_int_equal(weir_extents_init(&s->v, s->extents, EXTENTS, PAGES, DONORS, 2), 0);
	s->v.is_mapped = true;
	s->m = (struct weir_members){ .extents = &s->v,
				      .copy = s->copies,
				      .group = s->group,
				      .group_of = group_of,
				      .equal = s->equal,
				      .is_blank = is_blank };
	s->group[0] = (struct weir_member_group){ 2, { serving_at_0, serving_at_1 } };
	s->group[1] = (struct weir_member_group){ 2, { serving_at_1, serving_at_2 } };
	for (uint8_t i = 0; i < DONORS; i++)
		weir_extents_donor_up(&s->v, i);
}

/* Opens all regions at @donors; those that were there before, if @was_there. */
static void attach(struct members_fixture *s, uint64_t donors)
{
	for (uint32_t i = 0; i < EXTENTS; i++) {
		struct weir_extents_placement place;
		struct weir_member member;
		uint16_t tried = 0;
		bool is_new;

		while (weir_members_next(&s->m, i, donors, &tried, &place, &member, &is_new)) {
			bool *has_region = &s->has_region[place.donor][i];

			weir_members_attach(&s->m, &place, &member, is_new, *has_region);
			*has_region = true;
		}
	}
}

/* Return: the last error. */
static int open_all(struct members_fixture *s, bool is_proven)
{
	int rc = 0;

	for (uint32_t i = 0; i < EXTENTS; i++) {
		int one = weir_members_open(&s->m, i, is_proven);

		rc = one ? one : rc;
		weir_members_trust_new(&s->m, i);
	}
	return rc;
}

static uint32_t count_equal(struct members_fixture *s)
{
	for (uint32_t i = 0; i < EXTENTS; i++)
		weir_members_are_equal(&s->m, i);
	return s->m.nr_equal;
}

/* Fills all copies. Return: how many pages were read from donor @from. */
static uint32_t fill(struct members_fixture *s, uint8_t from)
{
	struct weir_extents_copy_step step;
	uint32_t read = 0;

	for (;;) {
		weir_extents_resync_next(&s->v, 0, &step);
		if (step.what != WEIR_EXTENTS_COPY_READ && step.what != WEIR_EXTENTS_COPY_WRITE)
			return read;
		if (step.what == WEIR_EXTENTS_COPY_READ &&
		    s->extents[step.extent].replica[step.slot].donor == from)
			read += step.pages;
		weir_extents_resync_done(&s->v, 0, true);
	}
}

static void write_page(struct members_fixture *s, uint32_t extent)
{
	struct weir_extents_write write;

	assert_int_equal(weir_extents_write(&s->v, &write, extent, 0, 1, sums), 0);
	assert_int_equal(weir_extents_write_end(&s->v, &write, 0), 0);
}

static void begin_opened(struct members_fixture *s)
{
	begin(s, true);
	attach(s, ALL);
	assert_int_equal(open_all(s, false), 0);
	assert_int_equal(count_equal(s), EXTENTS);
}

static void a_blank_volume_is_whole_once_all_regions_are_open(void **state)
{
	struct members_fixture s;

	(void)state;
	begin(&s, true);
	attach(&s, 1u << 1);
	assert_int_equal(open_all(&s, false), -EAGAIN);
	assert_int_equal(count_equal(&s), 0);
	attach(&s, ALL);
	assert_int_equal(open_all(&s, false), 0);
	assert_int_equal(count_equal(&s), EXTENTS);
	assert_int_equal(weir_extents_census(&s.v).whole, EXTENTS);
	assert_int_equal(s.m.moves, 2 * EXTENTS);
}

static void a_volume_without_memory_that_was_not_blank_needs_a_proof(void **state)
{
	struct members_fixture s;

	(void)state;
	begin(&s, false);
	attach(&s, ALL);
	assert_int_equal(open_all(&s, false), -ENODATA);
	assert_int_equal(weir_extents_census(&s.v).whole, 0);
	assert_int_equal(open_all(&s, true), 0);
	assert_int_equal(count_equal(&s), EXTENTS);
}

static void one_copy_is_the_source_of_all_others(void **state)
{
	struct members_fixture s;

	(void)state;
	begin(&s, false);
	memset(s.has_region, true, sizeof(s.has_region));
	attach(&s, ALL);
	assert_int_equal(open_all(&s, false), 0);
	for (uint32_t i = 0; i < EXTENTS; i++)
		assert_int_equal(weir_extents_count_valid(&s.v, i), 1);
	assert_int_equal(count_equal(&s), 0);
	fill(&s, 0);
	assert_int_equal(count_equal(&s), EXTENTS);
}

static void a_serving_copy_with_memory_is_the_source_and_not_one_without(void **state)
{
	struct members_fixture s;

	(void)state;
	begin(&s, false);
	s.has_region[1][0] = s.has_region[1][1] = s.has_region[1][2] = true;
	attach(&s, ALL);
	assert_int_equal(open_all(&s, false), 0);
	assert_int_equal(fill(&s, 1), EXTENTS * PAGES);
	assert_int_equal(count_equal(&s), EXTENTS);
}

static void another_source_is_chosen_if_the_first_dies_before_the_copies_are_equal(void **state)
{
	struct members_fixture s;

	(void)state;
	begin(&s, false);
	memset(s.has_region, true, sizeof(s.has_region));
	attach(&s, ALL);
	assert_int_equal(open_all(&s, false), 0);
	s.group[0] = (struct weir_member_group){ 1, { serving_at_1 } };
	weir_members_leave(&s.m, 0);
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 0);
	assert_int_equal(open_all(&s, false), 0);
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 1);
	assert_true(weir_members_are_equal(&s.m, 0));
	s.group[0].nr = 0;
	weir_members_leave(&s.m, 2);
	assert_int_equal(weir_members_open(&s.m, 2, false), -EIO);
}

static void a_new_member_is_filled_and_then_ready(void **state)
{
	struct weir_extents_placement place;
	struct members_fixture s;

	(void)state;
	begin_opened(&s);
	write_page(&s, 0);
	s.group[0] = (struct weir_member_group){ 2, { serving_at_1, new_at_3 } };
	for (uint32_t i = 0; i < EXTENTS; i++)
		weir_members_leave(&s.m, i);
	while (weir_extents_reclaim(&s.v, &place)) {
		assert_int_equal(place.donor, 0);
		weir_members_copy(&s.m, place.extent, place.slot)->is_attached = false;
	}
	attach(&s, ALL);
	open_all(&s, false);
	assert_false(weir_members_is_ready(&s.m, 0, &s.group[0].member[1]));
	assert_true(fill(&s, 1) >= PAGES);
	assert_true(weir_members_is_ready(&s.m, 0, &s.group[0].member[1]));
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 2);
	assert_int_equal(weir_extents_count_valid(&s.v, 2), 2);
}

/* A donor that left the group and joined again has old bytes only under the old name. */
static void a_copy_of_an_earlier_membership_leaves(void **state)
{
	struct members_fixture s;

	(void)state;
	begin_opened(&s);
	write_page(&s, 0);
	s.group[0].member[0].joined = 7;
	s.group[0].member[0].serves = s.group[0].member[0].counts = false;
	weir_members_leave(&s.m, 0);
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 1);
	assert_int_equal(weir_members_slot(&s.m, 0, &s.group[0].member[0]), s.v.slots);
}

static void a_write_waits_for_a_member_in_the_map_and_for_no_other(void **state)
{
	struct members_fixture s;

	(void)state;
	begin_opened(&s);
	assert_false(weir_members_must_wait(&s.m, 0));
	weir_members_detach(&s.m, 0);
	assert_true(weir_members_must_wait(&s.m, 0));
	assert_false(weir_members_must_wait(&s.m, 1));
	s.group[0] = (struct weir_member_group){ 1, { serving_at_1 } };
	weir_members_leave(&s.m, 0);
	assert_false(weir_members_must_wait(&s.m, 0));
}

static void a_donor_that_is_connected_again_has_its_copies(void **state)
{
	struct members_fixture s;

	(void)state;
	begin_opened(&s);
	write_page(&s, 0);
	weir_members_detach(&s.m, 0);
	attach(&s, ALL);
	assert_false(weir_members_must_wait(&s.m, 0));
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 2);
	assert_int_equal(s.extents[0].sum[0] & ~1u, sums[0]);
}

static void a_write_that_a_member_missed_begins_again(void **state)
{
	struct weir_extents_write write;
	struct members_fixture s;

	(void)state;
	begin_opened(&s);
	write_page(&s, 0);
	assert_int_equal(weir_extents_write(&s.v, &write, 0, 0, 1, &sums[2]), 0);
	assert_true(weir_members_are_used(&s.m, 0));
	weir_extents_write_undo(&s.v, &write, 1);
	assert_false(weir_members_are_used(&s.m, 0));
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 2);
	assert_int_equal(s.extents[0].sum[0], WEIR_SUM_UNKNOWN);
	assert_int_equal(weir_extents_write(&s.v, &write, 0, 0, 1, &sums[2]), 0);
	assert_int_equal(weir_extents_write_end(&s.v, &write, 0), 0);
	assert_int_equal(s.extents[0].sum[0], sums[2]);
}

/* The resync skips pages that a write has overtaken: without the write they are lost there. */
static void a_filling_copy_that_missed_such_a_write_is_stale(void **state)
{
	struct weir_extents_write write;
	struct members_fixture s;
	uint8_t slot;

	(void)state;
	begin_opened(&s);
	write_page(&s, 0);
	s.group[0] = (struct weir_member_group){ 3, { serving_at_0, serving_at_1, new_at_3 } };
	attach(&s, ALL);
	slot = weir_members_slot(&s.m, 0, &s.group[0].member[2]);
	assert_int_equal(s.extents[0].replica[slot].state, WEIR_REPLICA_FILLING);
	assert_int_equal(weir_extents_write(&s.v, &write, 0, 0, 1, &sums[2]), 0);
	weir_extents_write_undo(&s.v, &write, (uint8_t)(1u | 1u << slot));
	assert_int_equal(s.extents[0].replica[slot].state, WEIR_REPLICA_STALE);
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 2);
}

/* Donor 3 fills a member of its own in group 0. */
static void begin_rebuild(struct members_fixture *s)
{
	begin(s, false);
	s->m.is_rebuild = true;
	memset(s->has_region, true, sizeof(s->has_region));
	s->has_region[3][0] = s->has_region[3][2] = false;
	s->group[0] = (struct weir_member_group){ 3, { serving_at_0, serving_at_1, new_at_3 } };
	s->group[0].member[2].is_own = true;
}

static void a_donor_fills_its_own_member_and_nothing_else(void **state)
{
	struct members_fixture s;
	uint64_t done, all;

	(void)state;
	begin_rebuild(&s);
	attach(&s, ALL);
	assert_int_equal(s.m.moves, 3 * 2);
	assert_int_equal(open_all(&s, false), 0);
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 2);
	assert_int_equal(weir_extents_count_valid(&s.v, 1), 0);
	assert_int_equal(count_equal(&s), 1);
	assert_true(weir_members_are_equal(&s.m, 1));
	weir_members_progress(&s.m, NULL, NULL, &done, &all);
	assert_int_equal(done, 0);
	assert_int_equal(all, 2 * PAGES);
	assert_int_equal(fill(&s, 0) + fill(&s, 1), 2 * PAGES);
	assert_int_equal(count_equal(&s), EXTENTS);
	weir_members_progress(&s.m, NULL, NULL, &done, &all);
	assert_int_equal(done, all);
}

static void a_donor_does_not_wait_for_a_member_that_another_fills(void **state)
{
	struct weir_member another = { .joined = 8, .donor = 2, .counts = true };
	struct members_fixture s;

	(void)state;
	begin_rebuild(&s);
	s.group[0].member[3] = s.group[0].member[2];
	s.group[0].member[2] = another; /* first, and there is one slot */
	s.group[0].nr = 4;
	attach(&s, ALL);
	assert_int_equal(weir_members_slot(&s.m, 0, &s.group[0].member[2]), s.v.slots);
	assert_int_equal(open_all(&s, false), 0);
	fill(&s, 0);
	assert_int_equal(count_equal(&s), EXTENTS);
}

static void a_donor_leaves_a_group_without_a_source_alone(void **state)
{
	struct members_fixture s;

	(void)state;
	begin_rebuild(&s);
	s.group[0].member[0].serves = s.group[0].member[1].serves = false;
	attach(&s, ALL);
	assert_int_equal(s.m.moves, 0);
	assert_int_equal(open_all(&s, false), 0);
	assert_int_equal(count_equal(&s), EXTENTS);
}

/* Group 0 has three shards. Two have all data, and the last still syncs. */
static void begin_coded(struct members_fixture *s)
{
	static const struct weir_member third = {
		.joined = 4, .donor = 2, .shard = 2, .counts = true
	};

	begin(s, false);
	s->m.data = 2;
	assert_int_equal(weir_extents_init(&s->v, s->extents, EXTENTS, PAGES, DONORS, 3), 0);
	s->v.is_mapped = true;
	for (uint8_t i = 0; i < DONORS; i++)
		weir_extents_donor_up(&s->v, i);
	s->group[0] = (struct weir_member_group){ 3, { serving_at_0, serving_at_1, third } };
	s->group[0].member[1].shard = 1;
}

static void a_code_opens_once_each_shard_that_counts_is_there(void **state)
{
	struct members_fixture s;
	uint16_t counting, found;

	(void)state;
	begin_coded(&s);
	assert_int_equal(weir_members_open_coded(&s.m, 0, true, &counting, &found), -EAGAIN);
	memset(s.has_region, true, sizeof(s.has_region));
	s.has_region[1][0] = false;
	attach(&s, 3);
	assert_int_equal(weir_members_open_coded(&s.m, 0, true, &counting, &found), -EAGAIN);
	attach(&s, ALL);
	assert_int_equal(s.extents[0].replica[2].shard, 2);
	assert_int_equal(weir_members_open_coded(&s.m, 0, false, &counting, &found), 0);
	assert_int_equal(counting, 7);
	assert_int_equal(found, 5);
	weir_extents_trust(&s.v, 0, 0);
	assert_int_equal(weir_members_open_coded(&s.m, 0, false, &counting, &found), 0);
	assert_int_equal(counting, 0);
}

/* The stripes are in the records of all shards that count. */
static void a_donor_of_a_code_needs_shards_that_others_fill(void **state)
{
	struct members_fixture s;
	uint16_t counting, found;

	(void)state;
	begin_coded(&s);
	s.m.is_rebuild = true;
	s.group[0].member[3] = new_at_3;
	s.group[0].member[3].is_own = true;
	s.group[0].nr = 4;
	attach(&s, ALL & ~(1u << 2));
	assert_int_equal(weir_members_open_coded(&s.m, 0, true, &counting, &found), -EAGAIN);
	attach(&s, ALL);
	assert_int_equal(weir_members_open_coded(&s.m, 0, true, &counting, &found), 0);
	assert_int_equal(counting, 1 | 2 | 8);
}

static void a_code_with_too_few_shards_is_lost(void **state)
{
	struct members_fixture s;
	uint16_t counting, found;

	(void)state;
	begin_coded(&s);
	s.group[0].member[1].serves = false;
	attach(&s, ALL);
	assert_int_equal(weir_members_open_coded(&s.m, 0, true, &counting, &found), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_blank_volume_is_whole_once_all_regions_are_open),
		cmocka_unit_test(a_volume_without_memory_that_was_not_blank_needs_a_proof),
		cmocka_unit_test(one_copy_is_the_source_of_all_others),
		cmocka_unit_test(a_serving_copy_with_memory_is_the_source_and_not_one_without),
		cmocka_unit_test(
			another_source_is_chosen_if_the_first_dies_before_the_copies_are_equal),
		cmocka_unit_test(a_new_member_is_filled_and_then_ready),
		cmocka_unit_test(a_copy_of_an_earlier_membership_leaves),
		cmocka_unit_test(a_write_waits_for_a_member_in_the_map_and_for_no_other),
		cmocka_unit_test(a_donor_that_is_connected_again_has_its_copies),
		cmocka_unit_test(a_write_that_a_member_missed_begins_again),
		cmocka_unit_test(a_filling_copy_that_missed_such_a_write_is_stale),
		cmocka_unit_test(a_donor_fills_its_own_member_and_nothing_else),
		cmocka_unit_test(a_donor_does_not_wait_for_a_member_that_another_fills),
		cmocka_unit_test(a_donor_leaves_a_group_without_a_source_alone),
		cmocka_unit_test(a_code_opens_once_each_shard_that_counts_is_there),
		cmocka_unit_test(a_donor_of_a_code_needs_shards_that_others_fill),
		cmocka_unit_test(a_code_with_too_few_shards_is_lost),
	};

	return cmocka_run_group_tests_name("core volume members", tests, NULL, NULL);
}
