/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Virtual time alone decides when events happen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/event/event.h"
#include "sim/event/rng.h"

#define EVENTS 2000

struct thing {
	struct sim_event event;
	uint64_t at_ps;
	int number;
};

static struct sim_clock clock_;
static struct thing *seen[EVENTS];
static int nr_seen;

static void note(struct sim_event *event)
{
	seen[nr_seen++] = (struct thing *)event;
}

static int set_up(void **state)
{
	(void)state;
	nr_seen = 0;
	sim_clock_init(&clock_);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sim_clock_fini(&clock_);
	return 0;
}

static void happens_in_the_order_of_time_then_of_scheduling(void **state)
{
	static struct thing things[EVENTS];
	struct sim_rng rng;
	int i;

	(void)state;
	sim_rng_init(&rng, 1, "times", 0);
	for (i = 0; i < EVENTS; i++) {
		things[i] = (struct thing){ { note, 0 }, sim_rng_below(&rng, 100), i };
		sim_clock_at(&clock_, &things[i].event, things[i].at_ps);
	}
	sim_clock_run(&clock_, 100);
	assert_int_equal(nr_seen, EVENTS);
	for (i = 1; i < EVENTS; i++)
		assert_true(seen[i - 1]->at_ps < seen[i]->at_ps ||
			    (seen[i - 1]->at_ps == seen[i]->at_ps &&
			     seen[i - 1]->number < seen[i]->number));
}

/* Against the simplest schedule, a linear search. */
static void moved_and_cancelled_ones_happen_as_in_a_plain_list(void **state)
{
	static struct thing things[200];
	struct sim_rng rng;
	uint64_t last;
	int i, round, due;

	(void)state;
	sim_rng_init(&rng, 2, "moves", 0);
	for (i = 0; i < 200; i++)
		things[i] = (struct thing){ { note, 0 }, SIM_NEVER, i };
	for (round = 0; round < 4000; round++) {
		struct thing *t = &things[sim_rng_below(&rng, 200)];

		t->at_ps = sim_rng_below(&rng, 3) ? clock_.now_ps + sim_rng_below(&rng, 50) :
						    SIM_NEVER;
		if (t->at_ps == SIM_NEVER)
			sim_clock_cancel(&clock_, &t->event);
		else
			sim_clock_at(&clock_, &t->event, t->at_ps);
		assert_int_equal(sim_clock_due_ps(&clock_, &t->event), t->at_ps);
		if (round % 8)
			continue;
		for (i = due = 0; i < 200; i++)
			due += things[i].at_ps <= clock_.now_ps + 3;
		nr_seen = 0;
		last = clock_.now_ps;
		sim_clock_run(&clock_, clock_.now_ps + 3);
		assert_int_equal(nr_seen, due);
		for (i = 0; i < nr_seen; i++) {
			assert_true(seen[i]->at_ps >= last);
			assert_true(seen[i]->at_ps <= clock_.now_ps);
			last = seen[i]->at_ps;
			seen[i]->at_ps = SIM_NEVER;
		}
	}
}

static struct thing plain[60];
static struct sim_rng moves;
static int nr_moves;

/*
 * Search all events: whether another is due earlier, or at the same time and was scheduled
 * earlier.
 */
static bool comes_before_all_others(const struct thing *thing)
{
	int i;

	for (i = 0; i < 60; i++)
		if (plain[i].at_ps < thing->at_ps ||
		    (plain[i].at_ps == thing->at_ps && plain[i].number < thing->number))
			return false;
	return true;
}

static void move(struct thing *thing)
{
	thing->at_ps = clock_.now_ps + sim_rng_below(&moves, 20);
	thing->number = nr_moves++;
	sim_clock_at(&clock_, &thing->event, thing->at_ps);
}

/* During the event, nothing else waits for the same time: see event.c. */
static void change_others(struct sim_event *event)
{
	struct thing *thing = (struct thing *)event;
	uint64_t first_ps = SIM_NEVER, next_ps = clock_.now_ps + 1;
	int i, changes = sim_rng_below(&moves, 4);

	assert_int_equal(thing->at_ps, clock_.now_ps);
	assert_true(comes_before_all_others(thing));
	thing->at_ps = SIM_NEVER;
	nr_seen++;
	for (i = 0; i < 60; i++)
		if (plain[i].at_ps < first_ps)
			first_ps = plain[i].at_ps;
	if (sim_rng_below(&moves, 2))
		assert_int_equal(sim_clock_skip(&clock_, next_ps),
				 next_ps <= clock_.until_ps && next_ps < first_ps);
	while (changes--) {
		struct thing *other = &plain[sim_rng_below(&moves, 60)];

		if (sim_rng_below(&moves, 3)) {
			move(other);
		} else {
			other->at_ps = SIM_NEVER;
			sim_clock_cancel(&clock_, &other->event);
		}
		assert_int_equal(sim_clock_due_ps(&clock_, &other->event), other->at_ps);
	}
}

static void what_happens_may_schedule_move_and_cancel_others_and_skip(void **state)
{
	int i;

	(void)state;
	sim_rng_init(&moves, 3, "changes", 0);
	for (i = 0; i < 60; i++)
		plain[i] = (struct thing){ { change_others, 0 }, SIM_NEVER, 0 };
	for (i = 0; i < 2000; i++) {
		move(&plain[sim_rng_below(&moves, 60)]);
		sim_clock_run(&clock_, clock_.now_ps + sim_rng_below(&moves, 10));
	}
	assert_true(nr_seen > 2000);
}

static void time_is_skipped_only_when_nothing_is_due(void **state)
{
	struct thing thing = { { note, 0 }, 10, 0 };

	(void)state;
	assert_false(sim_clock_skip(&clock_, 1)); /* the clock does not run */
	clock_.until_ps = 1000;
	sim_clock_at(&clock_, &thing.event, 10);
	assert_true(sim_clock_skip(&clock_, 9));
	assert_int_equal(clock_.now_ps, 9);
	assert_false(sim_clock_skip(&clock_, 10));
	assert_int_equal(clock_.now_ps, 9);
	sim_clock_run(&clock_, 10);
	assert_int_equal(nr_seen, 1);
	clock_.until_ps = 1000;
	assert_false(sim_clock_skip(&clock_, 1001));
	assert_true(sim_clock_skip(&clock_, 1000));
}

static void streams_depend_on_seed_purpose_and_number_only(void **state)
{
	struct sim_rng a, b;
	uint64_t first;
	int i;

	(void)state;
	sim_rng_init(&a, 7, "sizes", 0);
	first = sim_rng_next(&a);
	sim_rng_init(&b, 7, "sizes", 0);
	assert_int_equal(sim_rng_next(&b), first);
	for (i = 0; i < 3; i++) {
		sim_rng_init(&b, 7 + (i == 0), i == 1 ? "times" : "sizes", i == 2);
		assert_int_not_equal(sim_rng_next(&b), first);
	}
}

/* Fixed, so that published figures can be computed again. */
static void the_numbers_are_the_same_on_every_machine(void **state)
{
	struct sim_rng rng;
	uint64_t sum = 0;
	int i;

	(void)state;
	sim_rng_init(&rng, 1, "test", 2);
	for (i = 0; i < 1000; i++)
		sum = sum * 31 + sim_rng_below(&rng, 1000000007);
	assert_int_equal(sum, 0xc7b9831e1eb9e9d6ull);
}

static void each_number_below_a_bound_comes_about_as_often(void **state)
{
	int count[7] = { 0 }, i;
	struct sim_rng rng;

	(void)state;
	sim_rng_init(&rng, 3, "even", 0);
	for (i = 0; i < 70000; i++)
		count[sim_rng_below(&rng, 7)]++;
	for (i = 0; i < 7; i++)
		assert_in_range(count[i], 9600, 10400);
	assert_int_equal(sim_rng_below(&rng, 1), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(happens_in_the_order_of_time_then_of_scheduling),
		TEST(moved_and_cancelled_ones_happen_as_in_a_plain_list),
		TEST(what_happens_may_schedule_move_and_cancel_others_and_skip),
		TEST(time_is_skipped_only_when_nothing_is_due),
		TEST(streams_depend_on_seed_purpose_and_number_only),
		TEST(the_numbers_are_the_same_on_every_machine),
		TEST(each_number_below_a_bound_comes_about_as_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
