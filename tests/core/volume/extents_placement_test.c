/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The expected content of a volume's pages, extents without memory, and the choice of memory. */
#include "tests/support/engine_bench.h"
#include "core/volume/extents.h"

#define EXTENTS 4u
#define PAGES 10u

struct extents_placement_fixture {
	struct weir_extents v;
	struct weir_extent extents[EXTENTS];
	uint32_t sum[EXTENTS][PAGES];
};

static const uint32_t sums[PAGES] = { 10, 12, 14, 16, 18, 20, 22, 24, 26, 28 };
static const uint32_t others[PAGES] = { 30, 32, 34, 36, 38, 40, 42, 44, 46, 48 };

static void ask(struct extents_placement_fixture *s)
{
	struct weir_extents_placement place;

	while (!weir_extents_next_placement(&s->v, &place))
		assert_int_equal(weir_extents_granted(&s->v, &place), 0);
}

/* All extents have memory at @donors donors; one extent is the reserve. */
static void begin(struct extents_placement_fixture *s, uint8_t donors, uint8_t replicas)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < EXTENTS; i++)
		s->extents[i].sum = s->sum[i];
	assert_int_equal(weir_extents_init(&s->v, s->extents, EXTENTS, PAGES, donors, replicas), 0);
	s->v.reserve = 1;
	for (uint8_t i = 0; i < donors; i++) {
		weir_extents_donor_up(&s->v, i);
		weir_extents_donor_room(&s->v, i, 8);
	}
	ask(s);
}

static void write_all(struct extents_placement_fixture *s, uint32_t extent, const uint32_t *what,
		      uint8_t failed)
{
	struct weir_extents_write write;

	assert_int_equal(weir_extents_write(&s->v, &write, extent, 0, PAGES, what), 0);
	weir_extents_write_end(&s->v, &write, failed);
}

static uint32_t reclaim(struct extents_placement_fixture *s)
{
	struct weir_extents_placement place;
	uint32_t reclaimed = 0;

	weir_extents_trim(&s->v);
	while (weir_extents_reclaim(&s->v, &place))
		reclaimed++;
	return reclaimed;
}

static void an_extent_not_discarded_keeps_its_memory(void **state)
{
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 1, 1);
	write_all(&s, 0, sums, 0);
	weir_extents_discard(&s.v, 0, 1, PAGES - 1, false);
	assert_int_equal(reclaim(&s), 0);
	assert_false(weir_extents_is_blank(&s.v, 0, 0, PAGES));
	assert_true(weir_extents_is_blank(&s.v, 0, 1, PAGES - 1));
}

static void a_discarded_extent_is_returned_except_the_reserve(void **state)
{
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 2, 2);
	for (uint32_t i = 0; i < 3; i++) {
		write_all(&s, i, sums, 0);
		weir_extents_discard(&s.v, i, 0, PAGES, false);
	}
	assert_int_equal(reclaim(&s), 2 * 2);
	assert_int_equal(weir_extents_census(&s.v).thin, 2);
	assert_int_equal(weir_extents_census(&s.v).whole, 2);
	ask(&s);
	assert_int_equal(weir_extents_census(&s.v).whole, 2);
}

static void zeroes_that_are_to_have_memory_keep_it(void **state)
{
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 1, 1);
	s.v.reserve = 0;
	weir_extents_discard(&s.v, 0, 0, PAGES, true);
	assert_int_equal(reclaim(&s), 0);
}

static void a_write_without_memory_takes_the_reserve(void **state)
{
	struct extents_placement_fixture s;
	uint32_t from;

	(void)state;
	begin(&s, 2, 2);
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	weir_extents_discard(&s.v, 1, 0, PAGES, false);
	assert_int_equal(reclaim(&s), 2);
	write_all(&s, 2, sums, 0);
	write_all(&s, 3, sums, 0);
	assert_int_equal(weir_extents_writable(&s.v, 1), 0);
	assert_int_equal(weir_extents_provide(&s.v, 1, &from), 0);
	assert_int_equal(from, 0);
	write_all(&s, 1, sums, 0);
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 0);
	ask(&s);
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 2);
}

static void an_extent_with_memory_takes_none(void **state)
{
	struct extents_placement_fixture s;
	uint32_t from;

	(void)state;
	begin(&s, 1, 1);
	assert_int_equal(weir_extents_provide(&s.v, 2, &from), 0);
	assert_int_equal(from, 2);
}

/* Extent 0 has one replica of two; those after it have data, and none that may be taken. */
static void memory_with_one_replica_is_taken_and_no_data(void **state)
{
	struct extents_placement_fixture s;
	uint32_t from;

	(void)state;
	begin(&s, 2, 2);
	s.v.reserve = 0;
	weir_extents_discard(&s.v, 1, 0, PAGES, false);
	assert_int_equal(reclaim(&s), 2);
	s.v.reserve = 1;
	write_all(&s, 2, sums, 0);
	write_all(&s, 3, sums, 0);
	write_all(&s, 0, sums, 2);
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	assert_int_equal(weir_extents_count_valid(&s.v, 0), 1);
	assert_int_equal(weir_extents_provide(&s.v, 1, &from), 0);
	assert_int_equal(from, 0);
	assert_int_equal(weir_extents_count_valid(&s.v, 3), 2);
}

/* Of several with memory the one with more replicas is taken, and the first of those alike. */
static void memory_with_more_replicas_is_taken_first(void **state)
{
	struct extents_placement_fixture s;
	uint32_t from;

	(void)state;
	begin(&s, 2, 2);
	s.v.reserve = 0;
	weir_extents_discard(&s.v, 3, 0, PAGES, false);
	assert_int_equal(reclaim(&s), 2);
	for (uint32_t i = 0; i < 3; i++) {
		write_all(&s, i, sums, i < 2 ? 2 : 0);
		weir_extents_discard(&s.v, i, 0, PAGES, false);
	}
	assert_int_equal(weir_extents_provide(&s.v, 3, &from), 0);
	assert_int_equal(from, 2);
	write_all(&s, 3, sums, 0);
	assert_int_equal(weir_extents_provide(&s.v, 2, &from), 0);
	assert_int_equal(from, 0);
}

static void memory_in_use_is_not_taken(void **state)
{
	struct extents_placement_fixture s;
	uint32_t from;
	uint8_t slot;

	(void)state;
	begin(&s, 1, 1);
	write_all(&s, 3, sums, 0);
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	weir_extents_discard(&s.v, 1, 0, PAGES, false);
	assert_int_equal(weir_extents_read(&s.v, 0, 0, &slot), 0);
	assert_int_equal(reclaim(&s), 1);
	write_all(&s, 2, sums, 0);
	assert_int_equal(weir_extents_provide(&s.v, 1, &from), -EAGAIN);
	weir_extents_read_end(&s.v, 0, slot);
	assert_int_equal(weir_extents_provide(&s.v, 1, &from), 0);
	assert_int_equal(from, 0);
}

static void without_memory_anywhere_a_write_is_refused(void **state)
{
	struct extents_placement_fixture s;
	uint32_t from;

	(void)state;
	begin(&s, 1, 1);
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	for (uint32_t i = 1; i < EXTENTS; i++)
		write_all(&s, i, sums, 0);
	s.v.reserve = 0;
	assert_int_equal(reclaim(&s), 1);
	s.v.reserve = 1;
	assert_int_equal(weir_extents_provide(&s.v, 0, &from), -EAGAIN);
	weir_extents_donor_room(&s.v, 0, 0);
	assert_int_equal(weir_extents_provide(&s.v, 0, &from), -ENOSPC);
}

static void unneeded_memory_is_not_taken(void **state)
{
	struct weir_extents_placement place;
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 1, 1);
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	s.v.reserve = 0;
	assert_int_equal(reclaim(&s), 1);
	s.v.reserve = 1;
	assert_int_equal(weir_extents_next_placement(&s.v, &place), 0);
	s.v.reserve = 0;
	assert_int_equal(weir_extents_granted(&s.v, &place), -ENOENT);
}

static void a_donor_does_not_give_an_extent_memory_twice(void **state)
{
	struct weir_extents_placement place = { 0 };
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 2, 2);
	write_all(&s, 0, sums, 2);
	assert_int_equal(reclaim(&s), 1);
	place.donor = s.extents[0].replica[0].donor;
	assert_int_equal(weir_extents_granted(&s.v, &place), -ENOENT);
	place.donor = !place.donor;
	assert_int_equal(weir_extents_granted(&s.v, &place), 0);
}

static void memory_is_not_given_back_while_it_is_written(void **state)
{
	struct weir_extents_write write;
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 1, 1);
	s.v.reserve = 0;
	assert_int_equal(weir_extents_write(&s.v, &write, 0, 0, PAGES, sums), 0);
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	assert_int_equal(reclaim(&s), 0);
	assert_int_equal(weir_extents_write_end(&s.v, &write, 0), 0);
	assert_int_equal(reclaim(&s), 1);
}

static void memory_not_returned_still_counts(void **state)
{
	struct weir_extents_placement place;
	struct extents_placement_fixture s;
	uint32_t had;

	(void)state;
	begin(&s, 1, 1);
	s.v.reserve = 0;
	had = weir_extents_donor_extents(&s.v, 0);
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	weir_extents_trim(&s.v);
	assert_false(weir_extents_next_return(&s.v, 0, &place));
	assert_true(weir_extents_next_return(&s.v, 1, &place));
	assert_int_equal(place.extent, 0);
	weir_extents_returned(&s.v, &place, false);
	assert_int_equal(weir_extents_donor_extents(&s.v, 0), had);
	assert_true(weir_extents_next_return(&s.v, 1, &place));
	weir_extents_returned(&s.v, &place, true);
	assert_int_equal(weir_extents_donor_extents(&s.v, 0), had - 1);
	assert_false(weir_extents_next_return(&s.v, 1, &place));
}

static void a_replica_being_returned_stays_in_place(void **state)
{
	struct weir_extents_placement place;
	struct extents_placement_fixture s;
	uint32_t from;

	(void)state;
	begin(&s, 1, 1);
	s.v.reserve = 1;
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	weir_extents_discard(&s.v, 1, 0, PAGES, false);
	for (uint32_t i = 2; i < EXTENTS; i++)
		write_all(&s, i, sums, 0);
	weir_extents_trim(&s.v);
	assert_true(weir_extents_next_return(&s.v, 1, &place));
	assert_int_equal(weir_extents_provide(&s.v, place.extent, &from), -EAGAIN);
	weir_extents_returned(&s.v, &place, true);
	assert_int_equal(weir_extents_provide(&s.v, place.extent, &from), 0);
}

static void a_slow_donor_keeps_thin_extents(void **state)
{
	struct extents_placement_fixture s;
	uint32_t from;

	(void)state;
	begin(&s, 1, 1);
	s.v.reserve = 0;
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	weir_extents_donor_slow(&s.v, 0);
	assert_int_equal(reclaim(&s), 0);
	assert_int_equal(weir_extents_provide(&s.v, 0, &from), 0);
	weir_extents_donor_up(&s.v, 0);
	assert_int_equal(reclaim(&s), 1);
	for (uint32_t i = 1; i < EXTENTS; i++)
		write_all(&s, i, sums, 0);
	s.v.reserve = 1;
	weir_extents_donor_slow(&s.v, 0);
	assert_int_equal(weir_extents_provide(&s.v, 0, &from), -EAGAIN);
	weir_extents_donor_lost(&s.v, 0);
	assert_int_equal(weir_extents_provide(&s.v, 0, &from), -ENOSPC);
}

static void memory_does_not_move_while_a_copy_of_it_is_under_way(void **state)
{
	struct weir_extents_copy_step step;
	struct extents_placement_fixture s;
	uint32_t from;

	(void)state;
	begin(&s, 2, 2);
	s.v.reserve = 0;
	weir_extents_discard(&s.v, 3, 0, PAGES, false);
	reclaim(&s);
	for (uint32_t i = 0; i < 3; i++)
		write_all(&s, i, sums, i ? 0 : 2);
	reclaim(&s);
	ask(&s);
	weir_extents_resync_next(&s.v, 0, &step);
	assert_int_equal(step.what, WEIR_EXTENTS_COPY_READ);
	weir_extents_resync_done(&s.v, 0, false); /* it will be read again */
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	assert_int_not_equal(weir_extents_provide(&s.v, 3, &from), 0);
}

/*
 * Extent 0 has lost a replica, and the first chunk for a new one was read. Return: the new
 * replica's slot.
 */
static uint8_t begin_copy(struct extents_placement_fixture *s, uint8_t donors)
{
	struct weir_extents_copy_step step;
	uint8_t slot = 0;

	begin(s, donors, 2);
	write_all(s, 0, sums, 2);
	reclaim(s);
	ask(s);
	while (s->extents[0].replica[slot].state != WEIR_REPLICA_FILLING)
		slot++;
	weir_extents_resync_next(&s->v, 0, &step);
	assert_int_equal(step.what, WEIR_EXTENTS_COPY_READ);
	weir_extents_resync_done(&s->v, 0, true);
	return slot;
}

static void a_chunk_not_copied_is_not_believed(void **state)
{
	struct weir_extents_copy_step step;
	struct extents_placement_fixture s;
	uint8_t slot;

	(void)state;
	slot = begin_copy(&s, 2);
	weir_extents_resync_next(&s.v, 0, &step);
	assert_int_equal(step.what, WEIR_EXTENTS_COPY_WRITE);
	weir_extents_resync_done(&s.v, 0, false);
	assert_int_equal(s.extents[0].replica[slot].state, WEIR_REPLICA_STALE);
}

static void a_copy_to_lost_memory_restarts_in_other_memory(void **state)
{
	struct weir_extents_write write;
	struct weir_extents_copy_step step;
	struct extents_placement_fixture s;
	uint8_t slot;

	(void)state;
	slot = begin_copy(&s, 3);
	assert_int_equal(weir_extents_write(&s.v, &write, 0, 0, PAGES, others), 0);
	weir_extents_resync_next(&s.v, 0, &step);
	assert_int_equal(step.what, WEIR_EXTENTS_COPY_WAIT);
	weir_extents_donor_lost(&s.v, s.extents[0].replica[slot].donor);
	assert_int_equal(weir_extents_write_end(&s.v, &write, (uint8_t)(1u << slot)), 0);
	reclaim(&s);
	ask(&s);
	assert_int_equal(s.extents[0].replica[slot].state, WEIR_REPLICA_FILLING);
	weir_extents_resync_next(&s.v, 0, &step);
	assert_true(step.what == WEIR_EXTENTS_COPY_READ && step.extent == 0 && step.page == 0);
}

static void memory_does_not_move_to_where_old_memory_is_used(void **state)
{
	struct extents_placement_fixture s;
	uint32_t from;
	uint8_t slot;

	(void)state;
	begin(&s, 2, 1);
	write_all(&s, 0, sums, 0);
	assert_int_equal(weir_extents_read(&s.v, 0, 0, &slot), 0);
	weir_extents_donor_lost(&s.v, s.extents[0].replica[slot].donor);
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	assert_int_equal(weir_extents_provide(&s.v, 0, &from), -EAGAIN);
	weir_extents_read_end(&s.v, 0, slot);
	assert_int_equal(weir_extents_provide(&s.v, 0, &from), 0);
}

static void a_replica_without_a_source_is_returned(void **state)
{
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 2, 2);
	write_all(&s, 0, sums, 2);
	reclaim(&s);
	ask(&s);
	assert_int_equal(weir_extents_donor_extents(&s.v, 1), EXTENTS);
	weir_extents_donor_lost(&s.v, s.extents[0].replica[0].donor);
	reclaim(&s);
	assert_int_equal(weir_extents_donor_extents(&s.v, 1), EXTENTS - 1);
	weir_extents_discard(&s.v, 0, 0, PAGES, true);
	ask(&s);
	assert_int_equal(weir_extents_census(&s.v).bare, 0);
}

static void a_first_write_that_fails_leaves_zeroes_a_later_one_leaves_doubt(void **state)
{
	uint32_t expected[PAGES];
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 1, 1);
	write_all(&s, 0, sums, 1);
	assert_true(weir_extents_is_blank(&s.v, 0, 0, PAGES));
	write_all(&s, 0, sums, 0);
	write_all(&s, 0, others, 1);
	weir_extents_expect(&s.v, 0, 0, PAGES, expected);
	assert_int_equal(expected[0], WEIR_SUM_UNKNOWN);
	assert_int_equal(expected[PAGES - 1], WEIR_SUM_UNKNOWN);
	write_all(&s, 0, others, 0);
	weir_extents_expect(&s.v, 0, 0, PAGES, expected);
	assert_memory_equal(expected, others, sizeof(others));
}

static void the_later_of_two_writes_decides_though_the_earlier_fails(void **state)
{
	struct weir_extents_write first, second;
	uint32_t expected[PAGES];
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 1, 1);
	assert_int_equal(weir_extents_write(&s.v, &first, 0, 0, PAGES, sums), 0);
	assert_int_equal(weir_extents_write(&s.v, &second, 0, 0, PAGES, others), 0);
	assert_int_equal(weir_extents_write_end(&s.v, &second, 0), 0);
	assert_int_equal(weir_extents_write_end(&s.v, &first, 1), -EIO);
	weir_extents_expect(&s.v, 0, 0, PAGES, expected);
	assert_memory_equal(expected, others, sizeof(others));
}

static void an_unwritten_replica_is_dropped_unless_last(void **state)
{
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 2, 2);
	write_all(&s, 0, sums, 0);
	assert_true(weir_extents_distrust(&s.v, 0, 1, 0, 1));
	assert_false(weir_extents_distrust(&s.v, 0, 0, 0, 1));
	assert_int_equal(weir_extents_writable(&s.v, 0), 1);
}

static void a_lost_extent_recovers_once_discarded(void **state)
{
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 1, 1);
	write_all(&s, 0, sums, 0);
	weir_extents_donor_lost(&s.v, 0);
	assert_int_equal(weir_extents_census(&s.v).lost, 1);
	weir_extents_discard(&s.v, 0, 0, PAGES, false);
	assert_int_equal(weir_extents_census(&s.v).lost, 0);
	reclaim(&s);
	weir_extents_donor_up(&s.v, 0);
	weir_extents_donor_room(&s.v, 0, 8);
	ask(&s);
	assert_int_equal(weir_extents_census(&s.v).whole, 4);
}

static void a_volume_grows_and_its_new_extents_want_memory(void **state)
{
	struct weir_extent extents[EXTENTS + 1] = { 0 };
	uint32_t sum[PAGES] = { 0 };
	struct extents_placement_fixture s;

	(void)state;
	begin(&s, 1, 1);
	write_all(&s, 0, sums, 0);
	memcpy(extents, s.extents, sizeof(s.extents));
	extents[EXTENTS].sum = sum;
	weir_extents_grow(&s.v, extents, EXTENTS + 1);
	assert_int_equal(weir_extents_census(&s.v).bare, 1);
	ask(&s);
	assert_int_equal(weir_extents_census(&s.v).whole, EXTENTS + 1);
	write_all(&s, EXTENTS, sums, 0);
}

static void found_memory_may_hold_anything(void **state)
{
	uint32_t expected[PAGES];
	struct extents_placement_fixture s;

	(void)state;
	memset(&s, 0, sizeof(s));
	assert_int_equal(weir_extents_init(&s.v, s.extents, 1, 1, 1, 1), 0);
	weir_extents_adopt(&s.v, s.sum[0], PAGES);
	assert_false(weir_extents_is_blank(&s.v, 0, 0, 1));
	weir_extents_expect(&s.v, 0, 0, PAGES, expected);
	assert_int_equal(expected[PAGES - 1], WEIR_SUM_UNKNOWN);
	weir_extents_donor_lost(&s.v, 0);
	assert_true(weir_extents_is_lost(&s.v, 0));
}

/* Extents 0 and 2 belong to donors 0 and 1, the others to donors 2 and 3. */
static void begin_groups(struct extents_placement_fixture *s)
{
	begin(s, 4, 2);
	for (uint32_t i = 0; i < EXTENTS; i++) {
		s->extents[i] =
			(struct weir_extent){ .sum = s->sum[i], .donors = i % 2 ? 0xcu : 0x3u };
	}
	for (uint8_t i = 0; i < 4; i++)
		weir_extents_donor_room(&s->v, i, 8);
}

static void an_extent_stays_in_its_group(void **state)
{
	struct extents_placement_fixture s;

	(void)state;
	begin_groups(&s);
	ask(&s);
	assert_int_equal(weir_extents_census(&s.v).whole, EXTENTS);
	for (uint8_t i = 0; i < 4; i++)
		assert_int_equal(weir_extents_donor_extents(&s.v, i), 2);
	weir_extents_donor_lost(&s.v, 0);
	assert_int_equal(reclaim(&s), 2);
	assert_int_equal(weir_extents_next_placement(&s.v, &(struct weir_extents_placement){ 0 }),
			 -ENOSPC);
}

static void memory_joins_an_extent_of_its_donors_group(void **state)
{
	struct weir_extents_placement place = { .extent = 0, .slot = 0, .donor = 3 };
	struct extents_placement_fixture s;

	(void)state;
	begin_groups(&s);
	assert_int_equal(weir_extents_granted(&s.v, &place), 0);
	assert_int_equal(place.extent, 1);
}

static void a_write_takes_memory_of_its_group_only(void **state)
{
	struct weir_extents_placement place = { .extent = 1, .slot = 0, .donor = 3 };
	struct extents_placement_fixture s;
	uint32_t from;

	(void)state;
	begin_groups(&s);
	assert_int_equal(weir_extents_granted(&s.v, &place), 0);
	assert_int_equal(weir_extents_provide(&s.v, 0, &from), -EAGAIN);
	assert_int_equal(weir_extents_provide(&s.v, 3, &from), 0);
	assert_int_equal(from, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_extent_not_discarded_keeps_its_memory),
		cmocka_unit_test(a_discarded_extent_is_returned_except_the_reserve),
		cmocka_unit_test(zeroes_that_are_to_have_memory_keep_it),
		cmocka_unit_test(a_write_without_memory_takes_the_reserve),
		cmocka_unit_test(an_extent_with_memory_takes_none),
		cmocka_unit_test(memory_with_one_replica_is_taken_and_no_data),
		cmocka_unit_test(memory_with_more_replicas_is_taken_first),
		cmocka_unit_test(memory_in_use_is_not_taken),
		cmocka_unit_test(without_memory_anywhere_a_write_is_refused),
		cmocka_unit_test(unneeded_memory_is_not_taken),
		cmocka_unit_test(a_donor_does_not_give_an_extent_memory_twice),
		cmocka_unit_test(memory_is_not_given_back_while_it_is_written),
		cmocka_unit_test(memory_not_returned_still_counts),
		cmocka_unit_test(a_replica_being_returned_stays_in_place),
		cmocka_unit_test(a_slow_donor_keeps_thin_extents),
		cmocka_unit_test(memory_does_not_move_while_a_copy_of_it_is_under_way),
		cmocka_unit_test(a_chunk_not_copied_is_not_believed),
		cmocka_unit_test(a_copy_to_lost_memory_restarts_in_other_memory),
		cmocka_unit_test(memory_does_not_move_to_where_old_memory_is_used),
		cmocka_unit_test(a_replica_without_a_source_is_returned),
		cmocka_unit_test(a_first_write_that_fails_leaves_zeroes_a_later_one_leaves_doubt),
		cmocka_unit_test(the_later_of_two_writes_decides_though_the_earlier_fails),
		cmocka_unit_test(an_unwritten_replica_is_dropped_unless_last),
		cmocka_unit_test(a_lost_extent_recovers_once_discarded),
		cmocka_unit_test(a_volume_grows_and_its_new_extents_want_memory),
		cmocka_unit_test(found_memory_may_hold_anything),
		cmocka_unit_test(an_extent_stays_in_its_group),
		cmocka_unit_test(memory_joins_an_extent_of_its_donors_group),
		cmocka_unit_test(a_write_takes_memory_of_its_group_only),
	};

	return cmocka_run_group_tests_name("core volume memory", tests, NULL, NULL);
}
