/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Whom a volume asks for memory, which donor is left alone, and when memory goes back. */
#include "tests/support/engine_bench.h"
#include "core/link/call_table.h"
#include "core/volume/borrow.h"

#define EXTENTS 4u
#define PAGES 10u
#define EXTENT_BYTES 1000u
#define PATIENCE 100u

struct borrow_fixture {
	struct weir_extents v;
	struct weir_extent extents[EXTENTS];
	uint32_t sum[EXTENTS][PAGES];
	struct weir_borrow b;
	struct weir_borrow_step step;
	uint64_t now_ns;
};

static const uint32_t sums[PAGES] = { 10, 12, 14, 16, 18, 20, 22, 24, 26, 28 };

/* Donors that are up, without room as far as the volume knows. */
static void begin(struct borrow_fixture *s, uint8_t donors, uint8_t replicas)
{
	memset(s, 0, sizeof(*s));
	for (uint32_t i = 0; i < EXTENTS; i++)
		s->extents[i].sum = s->sum[i];
	assert_int_equal(weir_extents_init(&s->v, s->extents, EXTENTS, PAGES, donors, replicas), 0);
	weir_borrow_init(&s->b, &s->v, EXTENT_BYTES, PATIENCE);
	for (uint8_t i = 0; i < donors; i++)
		weir_borrow_session(&s->b, i, WEIR_EXTENTS_DONOR_UP);
}

static enum weir_borrow_op next(struct borrow_fixture *s)
{
	weir_borrow_next(&s->b, &s->step, s->now_ns);
	return (enum weir_borrow_op)s->step.op;
}

static void expect(struct borrow_fixture *s, enum weir_borrow_op op, uint8_t donor)
{
	assert_int_equal(next(s), op);
	assert_int_equal(s->step.place.donor, donor);
}

static void begin_all(struct borrow_fixture *s)
{
	weir_borrow_begin(&s->b, WEIR_BORROW_FORGET, WEIR_BORROW_RETRY);
}

static void room(struct borrow_fixture *s, uint8_t donor, uint64_t bytes)
{
	weir_borrow_room(&s->b, donor, 0, bytes, s->now_ns);
}

/* All donors answer every step of a round; each has room for @bytes. */
static void run_round(struct borrow_fixture *s, uint64_t bytes)
{
	begin_all(s);
	while (next(s) != WEIR_BORROW_END) {
		if (s->step.op == WEIR_BORROW_ASK_MEMORY)
			weir_borrow_taken(&s->b, &s->step.place, 0, s->now_ns);
		else if (s->step.op == WEIR_BORROW_ASK_ROOM)
			room(s, s->step.place.donor, bytes);
		else if (s->step.op != WEIR_BORROW_RECONNECT)
			weir_borrow_returned(&s->b, &s->step, 0, s->now_ns);
	}
}

static void write_all(struct borrow_fixture *s, uint32_t extent)
{
	struct weir_extents_write write;

	assert_int_equal(weir_extents_write(&s->v, &write, extent, 0, PAGES, sums), 0);
	weir_extents_write_end(&s->v, &write, 0);
}

static void a_volume_asks_for_rooms_and_then_for_memory(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 2, 1);
	begin_all(&s);
	expect(&s, WEIR_BORROW_ASK_ROOM, 0);
	room(&s, 0, 1 * EXTENT_BYTES);
	expect(&s, WEIR_BORROW_ASK_ROOM, 1);
	room(&s, 1, 8 * EXTENT_BYTES);
	assert_int_equal(next(&s), WEIR_BORROW_END);
	assert_true(s.b.is_short);
	begin_all(&s);
	for (uint32_t i = 0; i < EXTENTS; i++) {
		expect(&s, WEIR_BORROW_ASK_MEMORY, 1);
		assert_true(weir_borrow_taken(&s.b, &s.step.place, 0, 0));
	}
	assert_int_equal(next(&s), WEIR_BORROW_END);
	assert_false(s.b.is_short || s.b.is_wanted);
}

static void room_for_a_part_of_an_extent_is_none(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 1, 1);
	room(&s, 0, EXTENT_BYTES - 1);
	begin_all(&s);
	expect(&s, WEIR_BORROW_ASK_ROOM, 0);
	room(&s, 0, 2 * EXTENT_BYTES - 1);
	assert_int_equal(s.v.donor[0].free, 1);
}

static void the_donor_with_the_least_room_is_named(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 3, 1);
	room(&s, 0, 3 * EXTENT_BYTES);
	room(&s, 1, EXTENT_BYTES - 1);
	assert_int_equal(weir_borrow_scarcest(&s.b), 1);
	assert_int_equal(s.b.donor[1].room_bytes, EXTENT_BYTES - 1);
	room(&s, 1, 4 * EXTENT_BYTES);
	assert_int_equal(weir_borrow_scarcest(&s.b), 2);
}

static void a_donor_that_refuses_is_not_asked_for_more(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 1, 1);
	room(&s, 0, 8 * EXTENT_BYTES);
	begin_all(&s);
	expect(&s, WEIR_BORROW_ASK_MEMORY, 0);
	assert_false(weir_borrow_taken(&s.b, &s.step.place, -ENOSPC, 0));
	expect(&s, WEIR_BORROW_ASK_ROOM, 0);
	assert_false(s.b.donor[0].is_silent);
}

static void memory_that_nothing_wants_any_more_has_no_place(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 1, 1);
	room(&s, 0, 8 * EXTENT_BYTES);
	begin_all(&s);
	expect(&s, WEIR_BORROW_ASK_MEMORY, 0);
	for (uint32_t i = 0; i < EXTENTS; i++)
		weir_extents_discard(&s.v, i, 0, PAGES, false);
	assert_false(weir_borrow_taken(&s.b, &s.step.place, 0, 0));
	weir_borrow_answered(&s.b, 0, -ETIMEDOUT, 0);
	assert_true(s.b.donor[0].is_silent);
}

/* Each status that may mean that the donor did not get the request. */
static void a_request_without_an_answer_is_no_refusal(void **state)
{
	static const int unanswered[] = { -ETIMEDOUT, -ENOTCONN, -ECONNRESET, -EAGAIN };

	(void)state;
	for (size_t i = 0; i < sizeof(unanswered) / sizeof(*unanswered); i++) {
		struct borrow_fixture s;

		begin(&s, 2, 1);
		room(&s, 0, 8 * EXTENT_BYTES);
		room(&s, 1, 4 * EXTENT_BYTES);
		begin_all(&s);
		expect(&s, WEIR_BORROW_ASK_MEMORY, 0);
		assert_false(weir_borrow_taken(&s.b, &s.step.place, unanswered[i], 0));
		assert_int_equal(s.v.donor[0].free, 8);
		assert_int_equal(s.v.donor[0].state, WEIR_EXTENTS_DONOR_SLOW);
		expect(&s, WEIR_BORROW_ASK_MEMORY, 1);
	}
}

static void a_silent_donor_is_left_alone_for_as_long_as_a_request_waits(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 1, 1);
	weir_borrow_answered(&s.b, 0, -ETIMEDOUT, 0);
	weir_borrow_session(&s.b, 0, WEIR_EXTENTS_DONOR_UP);
	assert_int_equal(s.v.donor[0].state, WEIR_EXTENTS_DONOR_SLOW);
	s.now_ns = PATIENCE - 1;
	begin_all(&s);
	assert_int_equal(next(&s), WEIR_BORROW_END);
	s.now_ns = PATIENCE;
	begin_all(&s);
	expect(&s, WEIR_BORROW_ASK_ROOM, 0);
	room(&s, 0, 8 * EXTENT_BYTES);
	assert_int_equal(next(&s), WEIR_BORROW_END);
	assert_true(s.b.is_wanted);
	weir_borrow_session(&s.b, 0, WEIR_EXTENTS_DONOR_UP);
	assert_int_equal(s.v.donor[0].state, WEIR_EXTENTS_DONOR_UP);
}

static void a_request_that_its_caller_gave_up_is_repeated_at_once(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 1, 1);
	weir_borrow_answered(&s.b, 0, -EINTR, 0);
	begin_all(&s);
	expect(&s, WEIR_BORROW_ASK_ROOM, 0);
}

static void one_silent_donor_of_a_round_is_asked_in_turn(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 3, 1);
	weir_borrow_answered(&s.b, 2, -ETIMEDOUT, 0);
	weir_borrow_answered(&s.b, 1, -ETIMEDOUT, 1);
	weir_borrow_answered(&s.b, 0, -ETIMEDOUT, 2);
	for (uint8_t donor = 3; donor--;) {
		s.now_ns = 2 * PATIENCE;
		begin_all(&s);
		expect(&s, WEIR_BORROW_ASK_ROOM, donor);
		weir_borrow_room(&s.b, donor, -ETIMEDOUT, 0, s.now_ns);
		assert_int_equal(next(&s), WEIR_BORROW_END);
		assert_false(s.b.is_wanted);
	}
}

static void a_lost_donor_is_replaced_once_its_memory_is_dropped(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 2, 1);
	room(&s, 0, 1 * EXTENT_BYTES);
	room(&s, 1, 3 * EXTENT_BYTES);
	run_round(&s, 0);
	assert_int_equal(weir_extents_donor_extents(&s.v, 0), 1);
	weir_borrow_answered(&s.b, 0, -ETIMEDOUT, 0);
	weir_borrow_session(&s.b, 0, WEIR_EXTENTS_DONOR_DOWN);
	s.now_ns = PATIENCE;
	begin_all(&s);
	expect(&s, WEIR_BORROW_DROP, 0);
	assert_true(weir_borrow_returned(&s.b, &s.step, 0, s.now_ns));
	expect(&s, WEIR_BORROW_ASK_ROOM, 1);
	room(&s, 1, 0);
	expect(&s, WEIR_BORROW_RECONNECT, 0);
	assert_int_equal(next(&s), WEIR_BORROW_END);
	weir_borrow_session(&s.b, 0, WEIR_EXTENTS_DONOR_UP);
	assert_int_equal(s.v.donor[0].state, WEIR_EXTENTS_DONOR_UP);
}

/* The memory of two extents of three is not needed; one donor is slow. */
static void unused_memory_goes_back_to_donors_that_answer(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 2, 1);
	room(&s, 0, 2 * EXTENT_BYTES);
	room(&s, 1, 2 * EXTENT_BYTES);
	run_round(&s, 0);
	for (uint32_t i = 0; i < EXTENTS; i++)
		weir_extents_discard(&s.v, i, 0, PAGES, false);
	weir_borrow_session(&s.b, 1, WEIR_EXTENTS_DONOR_SLOW);
	begin_all(&s);
	expect(&s, WEIR_BORROW_GIVE_BACK, 0);
	assert_false(weir_borrow_returned(&s.b, &s.step, -ETIMEDOUT, 0));
	assert_int_equal(next(&s), WEIR_BORROW_END); /* it is silent now */
	assert_false(s.b.is_wanted);
	assert_int_equal(weir_extents_donor_extents(&s.v, 0), 2);
	s.b.donor[0].is_silent = false;
	weir_borrow_session(&s.b, 0, WEIR_EXTENTS_DONOR_UP);
	begin_all(&s);
	for (uint32_t i = 0; i < 2; i++) {
		expect(&s, WEIR_BORROW_GIVE_BACK, 0);
		assert_true(weir_borrow_returned(&s.b, &s.step, 0, 0));
	}
	assert_int_equal(next(&s), WEIR_BORROW_END);
	assert_true(s.b.is_wanted);
}

/*
 * A read of lost memory ends after TAKE. Its slot is free then, and the extent may get other
 * memory: at once, not a period later.
 */
static void memory_dropped_late_makes_way_for_other_memory(void **state)
{
	struct borrow_fixture s;
	uint8_t slot;

	(void)state;
	begin(&s, 2, 1);
	room(&s, 0, EXTENTS * EXTENT_BYTES);
	run_round(&s, 0);
	write_all(&s, 0);
	assert_int_equal(weir_extents_read(&s.v, 0, 0, &slot), 0);
	weir_borrow_session(&s.b, 0, WEIR_EXTENTS_DONOR_DOWN);
	begin_all(&s);
	for (uint32_t i = 1; i < EXTENTS; i++) {
		expect(&s, WEIR_BORROW_DROP, 0);
		assert_true(weir_borrow_returned(&s.b, &s.step, 0, 0));
	}
	assert_false(s.b.is_wanted);
	expect(&s, WEIR_BORROW_ASK_ROOM, 1);
	room(&s, 1, 0);
	weir_extents_read_end(&s.v, 0, slot);
	expect(&s, WEIR_BORROW_DROP, 0);
	assert_int_equal(s.step.place.extent, 0);
	assert_true(weir_borrow_returned(&s.b, &s.step, 0, 0));
	assert_true(s.b.is_wanted);
}

static void a_donor_that_wants_memory_back_makes_the_volume_ask_the_others(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 2, 1);
	room(&s, 0, EXTENTS * EXTENT_BYTES);
	run_round(&s, 0);
	for (uint32_t i = 0; i < EXTENTS; i++)
		write_all(&s, i);
	begin_all(&s);
	assert_int_equal(next(&s), WEIR_BORROW_END); /* content: nobody is asked for room */
	weir_extents_donor_keeps(&s.v, 0, 0);
	begin_all(&s);
	expect(&s, WEIR_BORROW_ASK_ROOM, 0);
	room(&s, 0, 0);
	expect(&s, WEIR_BORROW_ASK_ROOM, 1);
	room(&s, 1, EXTENT_BYTES);
	assert_int_equal(next(&s), WEIR_BORROW_END);
	begin_all(&s);
	expect(&s, WEIR_BORROW_ASK_MEMORY, 1);
}

static void a_round_of_one_phase_has_no_other(void **state)
{
	struct borrow_fixture s;

	(void)state;
	begin(&s, 2, 1);
	weir_borrow_begin(&s.b, WEIR_BORROW_TAKE, WEIR_BORROW_TAKE);
	assert_int_equal(next(&s), WEIR_BORROW_END);
	assert_true(s.b.is_short);
	weir_borrow_begin(&s.b, WEIR_BORROW_QUERY, WEIR_BORROW_QUERY);
	expect(&s, WEIR_BORROW_ASK_ROOM, 0);
	room(&s, 0, 8 * EXTENT_BYTES);
	expect(&s, WEIR_BORROW_ASK_ROOM, 1);
	room(&s, 1, 0);
	assert_int_equal(next(&s), WEIR_BORROW_END);
	assert_int_equal(next(&s), WEIR_BORROW_END);
}

static void a_volume_has_64_to_128_extents_within_limits(void **state)
{
	static const struct {
		uint64_t bytes, bytes_max, extent_bytes;
	} cases[] = {
		{ 1, 1ull << 30, 1 << 20 },
		{ 128ull << 20, 1ull << 30, 1 << 20 },
		{ (128ull << 20) + 4096, 1ull << 30, 2 << 20 },
		{ 1ull << 40, 1ull << 30, 1 << 30 },
		{ 1ull << 40, 1ull << 63, 8ull << 30 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(weir_extents_choose_bytes(cases[i].bytes, cases[i].bytes_max),
				 cases[i].extent_bytes);
	assert_int_equal(weir_extents_choose_reserve(1), 2);
	assert_int_equal(weir_extents_choose_reserve(128), 16);
}

/* A page of zeroes needs no checksum; a page that failed has none. */
static void checksums_are_even_and_not_zero(void **state)
{
	(void)state;
	assert_int_equal(weir_page_sum(0), 2);
	assert_int_equal(weir_page_sum(1), 2);
	assert_int_equal(weir_page_sum(0xffffffff), 0xfffffffe);
	assert_int_equal(weir_page_sum(1ull << 63 | 5), 4);
	assert_true(weir_page_sum_is_zeroes(WEIR_SUM_NOTHING));
	assert_false(weir_page_sum_is_zeroes(WEIR_SUM_UNKNOWN) || weir_page_sum_is_zeroes(2));
	assert_true(weir_page_sum_fits(8, 8) && weir_page_sum_fits(WEIR_SUM_UNKNOWN, 8));
	assert_false(weir_page_sum_fits(8, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_volume_asks_for_rooms_and_then_for_memory),
		cmocka_unit_test(room_for_a_part_of_an_extent_is_none),
		cmocka_unit_test(the_donor_with_the_least_room_is_named),
		cmocka_unit_test(a_donor_that_refuses_is_not_asked_for_more),
		cmocka_unit_test(memory_that_nothing_wants_any_more_has_no_place),
		cmocka_unit_test(a_request_without_an_answer_is_no_refusal),
		cmocka_unit_test(a_silent_donor_is_left_alone_for_as_long_as_a_request_waits),
		cmocka_unit_test(a_request_that_its_caller_gave_up_is_repeated_at_once),
		cmocka_unit_test(one_silent_donor_of_a_round_is_asked_in_turn),
		cmocka_unit_test(a_lost_donor_is_replaced_once_its_memory_is_dropped),
		cmocka_unit_test(unused_memory_goes_back_to_donors_that_answer),
		cmocka_unit_test(memory_dropped_late_makes_way_for_other_memory),
		cmocka_unit_test(a_donor_that_wants_memory_back_makes_the_volume_ask_the_others),
		cmocka_unit_test(a_round_of_one_phase_has_no_other),
		cmocka_unit_test(a_volume_has_64_to_128_extents_within_limits),
		cmocka_unit_test(checksums_are_even_and_not_zero),
	};

	return cmocka_run_group_tests_name("core volume borrow", tests, NULL, NULL);
}
