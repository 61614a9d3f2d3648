/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Trust in replicas, memory for extents, and the filling of a replica step by step. */
#include "tests/support/engine_bench.h"
#include "core/volume/extents.h"

struct volume_fixture {
	struct weir_extents v;
	struct weir_extent extents[4];
	uint32_t sum[4][10];
};

/* Checksums of written pages. */
static const uint32_t sums[10] = { 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 };

/* Four extents of ten pages, over @donors donors with @room each. */
static void begin(struct volume_fixture *s, uint8_t donors, uint8_t replicas, const uint64_t *room)
{
	struct weir_extents_placement place;

	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < 4; i++)
		s->extents[i].sum = s->sum[i];
	assert_int_equal(weir_extents_init(&s->v, s->extents, 4, 10, donors, replicas), 0);
	for (uint8_t i = 0; i < donors; i++) {
		weir_extents_donor_up(&s->v, i);
		weir_extents_donor_room(&s->v, i, room[i]);
	}
	while (!weir_extents_next_placement(&s->v, &place))
		weir_extents_granted(&s->v, &place);
}

static void extents_go_to_the_emptiest_donor_and_never_twice_to_one(void **state)
{
	static const uint64_t room[] = { 100, 10, 11 };
	struct weir_extents_census census;
	struct volume_fixture s;

	(void)state;
	begin(&s, 3, 2, room);
	census = weir_extents_census(&s.v);
	assert_int_equal(census.whole, 4);
	assert_int_equal(s.v.donor[0].free, 96);
	assert_int_equal(s.v.donor[1].free + s.v.donor[2].free, 17);
	assert_true(s.v.donor[1].free >= 8 && s.v.donor[2].free >= 8);
}

static void without_room_for_the_second_replica_there_is_no_place(void **state)
{
	static const uint64_t room[] = { 100, 3 };
	struct weir_extents_placement place;
	struct volume_fixture s;

	(void)state;
	begin(&s, 2, 2, room);
	assert_int_equal(weir_extents_next_placement(&s.v, &place), -ENOSPC);
	assert_int_equal(weir_extents_census(&s.v).lean, 1);
}

static void an_unwritten_extent_is_not_lost_with_its_donors(void **state)
{
	static const uint64_t room[] = { 8, 8 };
	struct weir_extents_placement place;
	struct weir_extents_write write;
	struct volume_fixture s;

	(void)state;
	begin(&s, 2, 2, room);
	assert_int_equal(weir_extents_write(&s.v, &write, 2, 0, 1, sums), 0);
	assert_int_equal(weir_extents_write_end(&s.v, &write, 0), 0);
	weir_extents_donor_lost(&s.v, 0);
	weir_extents_donor_lost(&s.v, 1);
	while (weir_extents_reclaim(&s.v, &place))
		;
	weir_extents_donor_up(&s.v, 0);
	weir_extents_donor_room(&s.v, 0, 8);
	weir_extents_donor_up(&s.v, 1);
	weir_extents_donor_room(&s.v, 1, 8);
	while (!weir_extents_next_placement(&s.v, &place)) {
		assert_int_not_equal(place.extent, 2);
		weir_extents_granted(&s.v, &place);
	}
	assert_int_equal(weir_extents_census(&s.v).whole, 3);
	assert_int_equal(weir_extents_census(&s.v).lost, 1);
	assert_int_equal(weir_extents_write(&s.v, &write, 2, 0, 1, sums), -EIO);
	assert_int_equal(weir_extents_next_placement(&s.v, &place), -ENOENT);
}

static void a_write_without_a_replica_leaves_one_survivor(void **state)
{
	static const uint64_t room[] = { 8, 8 };
	struct weir_extents_write write;
	struct volume_fixture s;
	uint8_t slot;

	(void)state;
	begin(&s, 2, 2, room);
	assert_int_equal(weir_extents_write(&s.v, &write, 0, 0, 1, sums), 0);
	assert_int_equal(weir_extents_write_end(&s.v, &write, 3), -EIO);
	assert_int_equal(weir_extents_census(&s.v).lean, 1);
	assert_int_equal(weir_extents_read(&s.v, 0, 0, &slot), 0);
}

/* All replicas of extent 0 but the last miss a write, and get new memory. */
static void begin_filling(struct volume_fixture *s, uint8_t replicas)
{
	static const uint64_t room[] = { 8, 8, 8 };
	const uint8_t last = (uint8_t)(1u << (replicas - 1));
	struct weir_extents_write write;
	struct weir_extents_placement place;

	begin(s, 3, replicas, room);
	assert_int_equal(weir_extents_write(&s->v, &write, 0, 0, 1, sums), 0);
	assert_int_equal(weir_extents_write_end(&s->v, &write, write.slots & ~last), 0);
	while (weir_extents_reclaim(&s->v, &place))
		;
	while (!weir_extents_next_placement(&s->v, &place))
		weir_extents_granted(&s->v, &place);
	assert_int_equal(s->extents[0].replica[0].state, WEIR_REPLICA_FILLING);
}

static void a_filling_replica_is_no_witness(void **state)
{
	struct weir_extents_write write;
	struct volume_fixture s;
	uint8_t slot;

	(void)state;
	begin_filling(&s, 2);
	assert_int_equal(weir_extents_write(&s.v, &write, 0, 0, 1, sums), 0);
	assert_int_equal(write.slots, 3);
	assert_int_equal(weir_extents_write_end(&s.v, &write, 2), -EIO);
	assert_int_equal(weir_extents_read(&s.v, 0, 0, &slot), 0);
	assert_int_equal(slot, 1);
}

static uint8_t copy_next(struct volume_fixture *s, struct weir_extents_copy_step *step)
{
	weir_extents_resync_next(&s->v, 0, step);
	return step->what;
}

static void a_copy_waits_for_older_writes_and_skips_overtaken_pages(void **state)
{
	struct weir_extents_write old, overtaking;
	struct weir_extents_copy_step step;
	struct volume_fixture s;

	(void)state;
	begin_filling(&s, 2);
	assert_int_equal(weir_extents_write(&s.v, &old, 0, 7, 1, sums), 0);
	assert_int_equal(copy_next(&s, &step), WEIR_EXTENTS_COPY_WAIT);
	assert_int_equal(weir_extents_write(&s.v, &overtaking, 0, 0, 2, sums), 0);
	assert_int_equal(weir_extents_write_end(&s.v, &old, 0), 0);
	assert_int_equal(copy_next(&s, &step), WEIR_EXTENTS_COPY_READ);
	assert_true(step.slot == 1 && step.page == 0 && step.pages == 10);
	weir_extents_resync_done(&s.v, 0, true);
	assert_int_equal(copy_next(&s, &step), WEIR_EXTENTS_COPY_WRITE);
	assert_true(step.slot == 0 && step.page == 2 && step.pages == 8 && step.offset == 2);
	weir_extents_resync_done(&s.v, 0, true);
	assert_int_equal(copy_next(&s, &step), WEIR_EXTENTS_COPY_WAIT);
	assert_int_equal(s.extents[0].replica[0].state, WEIR_REPLICA_FILLING);
	assert_int_equal(weir_extents_write_end(&s.v, &overtaking, 0), 0);
	assert_int_equal(copy_next(&s, &step), WEIR_EXTENTS_COPY_NOTHING);
	assert_int_equal(s.extents[0].replica[0].state, WEIR_REPLICA_VALID);
}

static void an_aborted_copy_leaves_its_writes_to_the_next(void **state)
{
	struct weir_extents_write old, failing;
	struct weir_extents_copy_step step;
	struct volume_fixture s;

	(void)state;
	begin_filling(&s, 3);
	assert_int_equal(weir_extents_write(&s.v, &old, 0, 7, 1, sums), 0);
	assert_int_equal(copy_next(&s, &step), WEIR_EXTENTS_COPY_WAIT);
	assert_int_equal(weir_extents_write(&s.v, &failing, 0, 0, 2, sums), 0);
	assert_int_equal(weir_extents_write_end(&s.v, &failing, 1), 0);
	assert_int_equal(copy_next(&s, &step), WEIR_EXTENTS_COPY_WAIT);
	assert_int_equal(weir_extents_write_end(&s.v, &old, 0), 0);
	assert_int_equal(copy_next(&s, &step), WEIR_EXTENTS_COPY_READ);
	assert_int_equal(s.v.copy[0].target, 1);
}

static void a_donor_that_is_being_mended_is_read_last(void **state)
{
	static const uint64_t room[] = { 8, 8 };
	uint8_t slot, other;
	struct volume_fixture s;

	(void)state;
	begin(&s, 2, 2, room);
	assert_int_equal(weir_extents_read(&s.v, 0, 0, &slot), 0);
	weir_extents_donor_slow(&s.v, s.extents[0].replica[slot].donor);
	assert_int_equal(weir_extents_read(&s.v, 0, 0, &other), 0);
	assert_int_not_equal(slot, other);
	assert_int_equal(weir_extents_read(&s.v, 0, (uint8_t)(1u << other), &other), 0);
	assert_int_equal(slot, other);
	assert_int_equal(weir_extents_read(&s.v, 0, 3, &other), -EIO);
}

static void memory_in_use_is_not_given_back(void **state)
{
	static const uint64_t room[] = { 8, 8 };
	struct weir_extents_write write;
	struct weir_extents_placement place;
	struct volume_fixture s;
	uint8_t slot;

	(void)state;
	begin(&s, 2, 2, room);
	assert_int_equal(weir_extents_read(&s.v, 1, 0, &slot), 0);
	assert_int_equal(weir_extents_write(&s.v, &write, 1, 0, 1, sums), 0);
	assert_int_equal(weir_extents_write_end(&s.v, &write, (uint8_t)(1u << slot)), 0);
	assert_false(weir_extents_reclaim(&s.v, &place));
	weir_extents_read_end(&s.v, 1, slot);
	assert_true(weir_extents_reclaim(&s.v, &place));
	assert_int_equal(place.slot, slot);
}

static void values_out_of_range_are_refused(void **state)
{
	struct weir_extent extent = { 0 };
	struct weir_extents v;

	(void)state;
	assert_int_equal(weir_extents_init(&v, &extent, 0, 1, 1, 1), -EINVAL);
	assert_int_equal(weir_extents_init(&v, &extent, 1, 0, 1, 1), -EINVAL);
	assert_int_equal(weir_extents_init(&v, &extent, 1, 1, WEIR_EXTENTS_DONORS_MAX + 1, 1),
			 -EINVAL);
	assert_int_equal(weir_extents_init(&v, &extent, 1, 1, 16, WEIR_EXTENTS_WIDTH_MAX + 1),
			 -EINVAL);
	assert_int_equal(weir_extents_init(&v, &extent, 1, 1, 1, 2), -EINVAL);
}
static void write_each(struct volume_fixture *s)
{
	struct weir_extents_write write;

	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(weir_extents_write(&s->v, &write, i, 0, 10, sums), 0);
		assert_int_equal(weir_extents_write_end(&s->v, &write, 0), 0);
	}
}

/* Place all missing replicas and fill them. */
static void place_and_copy(struct volume_fixture *s)
{
	struct weir_extents_placement place;
	struct weir_extents_copy_step step;

	while (!weir_extents_next_placement(&s->v, &place))
		assert_int_equal(weir_extents_granted(&s->v, &place), 0);
	for (weir_extents_resync_next(&s->v, 0, &step); step.what;
	     weir_extents_resync_next(&s->v, 0, &step))
		weir_extents_resync_done(&s->v, 0, true);
}

static uint32_t reclaim(struct volume_fixture *s)
{
	struct weir_extents_placement place;
	uint32_t reclaimed = 0;

	weir_extents_trim(&s->v);
	while (weir_extents_reclaim(&s->v, &place))
		reclaimed++;
	return reclaimed;
}

static void a_reclaimed_replica_leaves_when_another_is_complete(void **state)
{
	static const uint64_t room[] = { 8, 8 };
	struct weir_extents_placement place;
	struct volume_fixture s;

	(void)state;
	begin(&s, 2, 1, room);
	write_each(&s);
	weir_extents_donor_keeps(&s.v, 0, 0);
	assert_int_equal(weir_extents_census(&s.v).leaving, 2);
	assert_int_equal(reclaim(&s), 0);
	assert_int_equal(weir_extents_next_placement(&s.v, &place), 0);
	assert_int_equal(place.donor, 1);
	assert_int_equal(weir_extents_granted(&s.v, &place), 0);
	assert_int_equal(reclaim(&s), 0);
	place_and_copy(&s);
	assert_int_equal(reclaim(&s), 2);
	assert_int_equal(weir_extents_donor_extents(&s.v, 0), 0);
	assert_int_equal(weir_extents_census(&s.v).whole, 4);
	weir_extents_donor_keeps(&s.v, 1, 0);
	assert_int_equal(weir_extents_next_placement(&s.v, &place), -ENOENT);
}

static void an_empty_extent_leaves_first(void **state)
{
	static const uint64_t room[] = { 8, 8 };
	struct weir_extents_write write;
	struct volume_fixture s;

	(void)state;
	begin(&s, 2, 1, room);
	assert_int_equal(weir_extents_write(&s.v, &write, 2, 0, 1, sums), 0);
	weir_extents_donor_keeps(&s.v, 0, 1);
	assert_true(s.extents[0].replica[0].leaves);
	assert_false(s.extents[2].replica[0].leaves);
}

static void a_replica_stays_if_no_donor_has_room(void **state)
{
	static const uint64_t room[] = { 8, 2 };
	struct weir_extents_placement place;
	struct volume_fixture s;

	(void)state;
	begin(&s, 2, 1, room);
	write_each(&s);
	weir_extents_donor_keeps(&s.v, 0, 0);
	place_and_copy(&s);
	assert_int_equal(reclaim(&s), 2);
	assert_int_equal(weir_extents_census(&s.v).leaving, 2);
	assert_int_equal(weir_extents_census(&s.v).whole, 4);
	assert_int_equal(weir_extents_next_placement(&s.v, &place), -ENOENT);
	weir_extents_donor_lost(&s.v, 1);
	assert_int_equal(reclaim(&s), 2);
	for (uint32_t i = 0; i < 4; i++)
		weir_extents_discard(&s.v, i, 0, 10, true);
	assert_int_equal(weir_extents_next_placement(&s.v, &place), -ENOSPC);
}

static void a_reclaiming_donor_loses_its_replica_alone(void **state)
{
	static const uint64_t room[] = { 8, 8 };
	struct volume_fixture s;

	(void)state;
	begin(&s, 2, 1, room);
	write_each(&s);
	weir_extents_donor_keeps(&s.v, 0, 0);
	place_and_copy(&s);
	weir_extents_donor_keeps(&s.v, 0, WEIR_EXTENTS_KEEPS_ALL);
	assert_int_equal(reclaim(&s), 2);
	assert_int_equal(weir_extents_donor_extents(&s.v, 0), 2);
	assert_int_equal(weir_extents_census(&s.v).whole, 4);
}

static void a_leaving_replica_is_filled_no_further(void **state)
{
	struct volume_fixture s;

	(void)state;
	begin_filling(&s, 2);
	weir_extents_donor_keeps(&s.v, s.extents[0].replica[0].donor, 0);
	weir_extents_trim(&s.v);
	assert_int_equal(s.extents[0].replica[0].state, WEIR_REPLICA_STALE);
}

/* An extent of two chunks, as the host of a mapped volume sees it: three copies, one trusted. */
struct mapped_fixture {
	struct weir_extents v;
	struct weir_extent extents[3];
	uint32_t sum[3][2 * WEIR_EXTENTS_CHUNK_PAGES];
};

static void begin_mapped(struct mapped_fixture *s)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < 3; i++)
		s->extents[i].sum = s->sum[i];
	assert_int_equal(
		weir_extents_init(&s->v, s->extents, 3, 2 * WEIR_EXTENTS_CHUNK_PAGES, 3, 3), 0);
	s->v.is_mapped = true;
	for (uint32_t i = 0; i < 3; i++) {
		for (uint8_t slot = 0; slot < 3; slot++) {
			weir_extents_donor_up(&s->v, slot);
			weir_extents_join(&s->v, &(struct weir_extents_placement){ i, slot, slot });
		}
		weir_extents_found(&s->v, i);
		weir_extents_trust(&s->v, i, 1);
	}
}

static void expect_step(struct weir_extents *v, uint8_t what, uint32_t extent, uint8_t slot,
			uint32_t page)
{
	struct weir_extents_copy_step step;

	weir_extents_resync_next(v, 0, &step);
	assert_int_equal(step.what, what);
	assert_int_equal(step.extent, extent);
	assert_int_equal(step.slot, slot);
	assert_int_equal(step.page, page);
}

/* Else the copy would be a mixture of two sources, which may differ. */
static void a_copy_from_another_source_begins_again(void **state)
{
	struct mapped_fixture s;

	(void)state;
	begin_mapped(&s);
	expect_step(&s.v, WEIR_EXTENTS_COPY_READ, 0, 1, 0);
	weir_extents_resync_done(&s.v, 0, true);
	expect_step(&s.v, WEIR_EXTENTS_COPY_WRITE, 0, 0, 0);
	weir_extents_resync_done(&s.v, 0, true);
	expect_step(&s.v, WEIR_EXTENTS_COPY_READ, 0, 1, WEIR_EXTENTS_CHUNK_PAGES);
	weir_extents_leave(&s.v, 0, 1);
	weir_extents_resync_done(&s.v, 0, false);
	weir_extents_found(&s.v, 0);
	weir_extents_trust(&s.v, 0, 2);
	expect_step(&s.v, WEIR_EXTENTS_COPY_READ, 0, 2, 0);
}

/* The first replica that is VALID is the source: 0, once it is filled from 1. */
static void copy_all(struct weir_extents *v, uint32_t extent, uint8_t target)
{
	const uint8_t source = target == 0;

	for (uint32_t page = 0; page < v->pages; page += WEIR_EXTENTS_CHUNK_PAGES) {
		expect_step(v, WEIR_EXTENTS_COPY_READ, extent, source, page);
		weir_extents_resync_done(v, 0, true);
		expect_step(v, WEIR_EXTENTS_COPY_WRITE, extent, target, page);
		weir_extents_resync_done(v, 0, true);
	}
}

static void an_extent_that_is_wanted_gets_all_its_copies_first(void **state)
{
	struct mapped_fixture s;

	(void)state;
	begin_mapped(&s);
	weir_extents_want(&s.v, 2);
	weir_extents_want(&s.v, 2);
	copy_all(&s.v, 2, 0);
	copy_all(&s.v, 2, 2);
	copy_all(&s.v, 0, 0);
	weir_extents_want(&s.v, 1);
	copy_all(&s.v, 1, 0);
	copy_all(&s.v, 1, 2);
	copy_all(&s.v, 0, 2);
	assert_int_equal(weir_extents_count_valid(&s.v, 2), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extents_go_to_the_emptiest_donor_and_never_twice_to_one),
		cmocka_unit_test(without_room_for_the_second_replica_there_is_no_place),
		cmocka_unit_test(an_unwritten_extent_is_not_lost_with_its_donors),
		cmocka_unit_test(a_write_without_a_replica_leaves_one_survivor),
		cmocka_unit_test(a_filling_replica_is_no_witness),
		cmocka_unit_test(a_copy_waits_for_older_writes_and_skips_overtaken_pages),
		cmocka_unit_test(an_aborted_copy_leaves_its_writes_to_the_next),
		cmocka_unit_test(a_donor_that_is_being_mended_is_read_last),
		cmocka_unit_test(memory_in_use_is_not_given_back),
		cmocka_unit_test(values_out_of_range_are_refused),
		cmocka_unit_test(a_reclaimed_replica_leaves_when_another_is_complete),
		cmocka_unit_test(an_empty_extent_leaves_first),
		cmocka_unit_test(a_replica_stays_if_no_donor_has_room),
		cmocka_unit_test(a_reclaiming_donor_loses_its_replica_alone),
		cmocka_unit_test(a_leaving_replica_is_filled_no_further),
		cmocka_unit_test(a_copy_from_another_source_begins_again),
		cmocka_unit_test(an_extent_that_is_wanted_gets_all_its_copies_first),
	};

	return cmocka_run_group_tests_name("core volume", tests, NULL, NULL);
}
