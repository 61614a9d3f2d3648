/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* When lanes are lent: by what the engine and the lanes have shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/lane/loan.h"

#define MANY 100000 /* requests that show a rate */

#define SAYS(sentence, function)                         \
	{                                                \
		(sentence), (function), NULL, NULL, NULL \
	}

/* A session, with its counters. */
struct loan_bench {
	struct weir_loans loans;
	uint64_t requests, wrs, now_ns;
};

static bool ask(struct loan_bench *l)
{
	return weir_loans_is_chance(&l->loans, l->requests, l->wrs, l->now_ns);
}

/* The engine serves @requests with @wrs, @rate of the former a millisecond. */
static void serve(struct loan_bench *l, uint64_t requests, uint64_t wrs, uint64_t rate)
{
	l->requests += requests;
	l->wrs += wrs;
	l->now_ns += requests * 1000000 / rate;
}

static void lend(struct loan_bench *l, struct weir_loan result, uint64_t rate)
{
	serve(l, result.done, result.done, rate);
	result.until_ns = l->now_ns;
	weir_loans_ended(&l->loans, &result, l->requests, l->wrs, l->now_ns);
}

/* Return: chances refused before one is taken; @most if none is. */
static unsigned int refusals(struct loan_bench *l, unsigned int most)
{
	unsigned int i;

	for (i = 0; i < most && !ask(l); i++)
		;
	return i;
}

/* After which the engine's rate is known to be 1000. */
static void begin(struct loan_bench *l)
{
	*l = (struct loan_bench){ .now_ns = 1000 };
	assert_false(ask(l));
	serve(l, MANY, MANY, 1000);
	assert_true(ask(l));
}

static void wait_for_the_rate_of_the_engine(void **state)
{
	struct loan_bench l = { .now_ns = 1000 };

	(void)state;
	assert_false(ask(&l));
	serve(&l, 100, 100, 1000);
	assert_false(ask(&l));
	serve(&l, MANY, MANY, 1000);
	assert_true(ask(&l));
	assert_in_range(l.loans.engine_rate, 990, 1010);
}

static void an_engine_that_has_slept_is_known(void **state)
{
	struct loan_bench l = { .now_ns = 1000 };

	(void)state;
	assert_false(ask(&l));
	serve(&l, MANY, MANY, 1000);
	l.now_ns += 1000000000000000;
	assert_true(ask(&l));
}

static void a_good_loan_is_followed_by_another(void **state)
{
	struct loan_bench l;

	(void)state;
	begin(&l);
	lend(&l, (struct weir_loan){ .done = MANY }, 3000);
	assert_true(ask(&l));
	lend(&l, (struct weir_loan){ .done = MANY, .has_met = true }, 3000);
	assert_true(ask(&l));
}

/* Until they count as slow. */
static void lend_slowly(struct loan_bench *l, bool has_met)
{
	unsigned int i;

	for (i = 0; i < WEIR_LOAN_SLOW_MAX; i++) {
		assert_true(!i || ask(l));
		lend(l, (struct weir_loan){ .done = MANY, .has_met = has_met }, 500);
	}
}

/* Then one more slow loan is enough. */
static void slow_lanes_are_seldom_tried(void **state)
{
	struct loan_bench l;

	(void)state;
	begin(&l);
	lend_slowly(&l, false);
	assert_in_range(refusals(&l, 1000000), 1000, 100000);
	lend(&l, (struct weir_loan){ .done = MANY }, 500);
	assert_in_range(refusals(&l, 1000000), 1000, 100000);
	lend(&l, (struct weir_loan){ .done = MANY }, 3000);
	assert_true(ask(&l));
}

/* A trial is short, and so is a loan after one that was slow. */
static void a_slow_loan_is_followed_by_a_short_one(void **state)
{
	const struct weir_loan lane = { .done = MANY, .until_ns = UINT64_MAX };
	struct loan_bench l;

	(void)state;
	begin(&l);
	lend(&l, lane, 3000);
	assert_false(weir_loans_is_over(&l.loans, &lane));
	lend(&l, lane, 500);
	assert_true(weir_loans_is_over(&l.loans, &lane));
	assert_true(ask(&l));
}

/* Lanes that nobody used in the end were not slow. */
static void idle_lanes_are_not_slow(void **state)
{
	struct weir_loan loan = { .done = MANY };
	struct loan_bench l;
	unsigned int i;

	(void)state;
	begin(&l);
	for (i = 0; i < 2 * WEIR_LOAN_SLOW_MAX; i++) {
		serve(&l, MANY, MANY, 3000);
		loan.until_ns = l.now_ns;
		l.now_ns += 1000000000;
		weir_loans_ended(&l.loans, &loan, l.requests, l.wrs, l.now_ns);
		assert_true(ask(&l));
	}
}

/* The engine shows that no neighbours come any more: its rate for them no longer counts. */
static void slow_lanes_are_tried_when_neighbours_are_gone(void **state)
{
	struct loan_bench l;
	unsigned int of_neighbours, of_others;

	(void)state;
	begin(&l);
	lend_slowly(&l, true);
	serve(&l, MANY, MANY / 8, 1000);
	of_neighbours = refusals(&l, 1000000);
	begin(&l);
	lend_slowly(&l, true);
	serve(&l, MANY, MANY, 1000);
	of_others = refusals(&l, 1000000);
	assert_true(of_others < of_neighbours);
}

static void loans_that_gain_nothing_get_rarer(void **state)
{
	struct loan_bench l;
	unsigned int first, second, third;

	(void)state;
	begin(&l);
	lend(&l, (struct weir_loan){ .done = 1 }, 1000);
	first = refusals(&l, 1000);
	weir_loans_failed(&l.loans);
	second = refusals(&l, 1000);
	lend(&l, (struct weir_loan){ .done = 10000, .waited = 9000 }, 3000);
	third = refusals(&l, 1000);
	assert_true(first && first < second && second < third);
	lend(&l, (struct weir_loan){ .done = 10000 }, 3000);
	assert_int_equal(refusals(&l, 1000), 0);
}

static void a_loan_has_an_end(void **state)
{
	struct weir_loan lane = { .done = MANY };
	struct loan_bench l;
	uint64_t end_ns;

	(void)state;
	begin(&l);
	end_ns = l.loans.since_ns + WEIR_LOAN_TRIAL_NS;
	lane.until_ns = end_ns - 1;
	assert_false(weir_loans_is_over(&l.loans, &lane));
	lane.until_ns = end_ns;
	assert_true(weir_loans_is_over(&l.loans, &lane));
	lend(&l, lane, 3000);
	lane.chains = WEIR_LOAN_CHAINS - 1;
	assert_false(weir_loans_is_over(&l.loans, &lane));
	lane.chains++;
	assert_true(weir_loans_is_over(&l.loans, &lane));
	lane = (struct weir_loan){ .done = 100, .waited = WEIR_LOAN_WAITS };
	assert_true(weir_loans_is_over(&l.loans, &lane));
	lane.waited--;
	assert_false(weir_loans_is_over(&l.loans, &lane));
}

/* A call may post several chains, and so step over a number of them. */
static void the_clock_is_read_now_and_then(void **state)
{
	struct weir_loan lane = { .chains = WEIR_LOAN_CLOCK_CHAINS - 1 };

	(void)state;
	assert_false(weir_loan_needs_time(&lane));
	lane.chains += 2;
	assert_true(weir_loan_needs_time(&lane));
	weir_loan_note_time(&lane, 5);
	assert_false(weir_loan_needs_time(&lane));
	assert_int_equal(lane.until_ns, 5);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SAYS("lanes wait until the engine has shown what it does",
		     wait_for_the_rate_of_the_engine),
		SAYS("an engine that has slept for long is known, too",
		     an_engine_that_has_slept_is_known),
		SAYS("a good loan is followed by another", a_good_loan_is_followed_by_another),
		SAYS("lanes that are slower than the engine are seldom tried",
		     slow_lanes_are_seldom_tried),
		SAYS("a slow loan is followed by a short one",
		     a_slow_loan_is_followed_by_a_short_one),
		SAYS("slow lanes are tried when neighbours are gone",
		     slow_lanes_are_tried_when_neighbours_are_gone),
		SAYS("loans that gain nothing get rarer", loans_that_gain_nothing_get_rarer),
		SAYS("lanes that nobody used in the end were not slow", idle_lanes_are_not_slow),
		SAYS("a loan has an end", a_loan_has_an_end),
		SAYS("the clock is read now and then", the_clock_is_read_now_and_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
