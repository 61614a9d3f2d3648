/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The poller and its estimates, on a modelled CQ in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/base/rng.h"
#include "core/poll/poll.h"

#define US 1000ull
#define WAKE_NS (50 * US)

static struct weir_idle_time idle_time;
static struct weir_poll poller;

static void start_priced(enum weir_poll_mode mode, uint32_t retries_max, uint32_t price_ns,
			 uint32_t wake_ns)
{
	const struct weir_poll_config config = {
		.mode = mode,
		.wcs_max = 4,
		.retries_max = retries_max,
		.busy_percent_max = 100,
	};

	weir_idle_time_init(&idle_time, price_ns, wake_ns);
	weir_poll_init(&poller, &config, &idle_time, 0);
}

static void start(enum weir_poll_mode mode, uint32_t retries_max)
{
	start_priced(mode, retries_max, WAKE_NS, WAKE_NS);
}

static void busy_never_sleeps(void **state)
{
	uint64_t now;

	(void)state;
	start(WEIR_POLL_BUSY, 0);
	assert_int_equal(weir_poll_woken(&poller, 0), WEIR_POLL_AGAIN);
	for (now = 1; now < 10000 * US; now += 7 * US)
		assert_int_equal(weir_poll_polled(&poller, 0, now), WEIR_POLL_AGAIN);
	assert_int_equal(poller.arms, 0);
}

static void event_is_armed_before_it_looks(void **state)
{
	(void)state;
	start(WEIR_POLL_EVENT, 0);
	assert_int_equal(weir_poll_woken(&poller, 0), WEIR_POLL_ARM);
	assert_int_equal(weir_poll_polled(&poller, 1, 1), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 0, 2), WEIR_POLL_SLEEP);
	assert_int_equal(weir_poll_woken(&poller, 3), WEIR_POLL_ARM);
}

static void event_batch_ends_after_its_batch(void **state)
{
	(void)state;
	start(WEIR_POLL_EVENT_BATCH, 0);
	assert_int_equal(weir_poll_woken(&poller, 0), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 3, 1), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 1, 2), WEIR_POLL_ARM);
	assert_int_equal(weir_poll_polled(&poller, 2, 3), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 0, 4), WEIR_POLL_SLEEP);
	assert_int_equal(weir_poll_woken(&poller, 5), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 1, 6), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 0, 7), WEIR_POLL_ARM);
}

static void hybrid_polls_while_there_is_something(void **state)
{
	int i;

	(void)state;
	start(WEIR_POLL_HYBRID, 0);
	weir_poll_woken(&poller, 0);
	for (i = 1; i < 100; i++)
		assert_int_equal(weir_poll_polled(&poller, 4, i), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 0, 100), WEIR_POLL_ARM);
	assert_int_equal(weir_poll_polled(&poller, 1, 101), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 0, 102), WEIR_POLL_ARM);
	assert_int_equal(weir_poll_polled(&poller, 0, 103), WEIR_POLL_SLEEP);
}

static void retries_are_consecutive(void **state)
{
	int i, round;
	uint64_t now = 0;

	(void)state;
	start(WEIR_POLL_ADAPTIVE, 3);
	weir_poll_woken(&poller, 0);
	for (round = 0; round < 5; round++) {
		for (i = 0; i < 2; i++)
			assert_int_equal(weir_poll_polled(&poller, 0, ++now), WEIR_POLL_AGAIN);
		assert_int_equal(weir_poll_polled(&poller, 1, ++now), WEIR_POLL_AGAIN);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(weir_poll_polled(&poller, 0, ++now), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 0, ++now), WEIR_POLL_ARM);
	assert_int_equal(weir_poll_polled(&poller, 0, ++now), WEIR_POLL_SLEEP);
}

static void waking_for_nothing_earns_no_new_budget(void **state)
{
	(void)state;
	start(WEIR_POLL_ADAPTIVE, 0);
	weir_poll_woken(&poller, 0);
	assert_int_equal(weir_poll_polled(&poller, 0, WAKE_NS), WEIR_POLL_ARM);
	assert_int_equal(weir_poll_polled(&poller, 0, WAKE_NS + 1), WEIR_POLL_SLEEP);
	assert_int_equal(weir_poll_woken(&poller, 2 * WAKE_NS), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 0, 2 * WAKE_NS + 1), WEIR_POLL_ARM);
}

/* A CQ with the semantics of verbs: the first completion after arming raises an event. */
struct poll_cq {
	uint32_t count;
	bool armed;
	bool event;
};

static void cq_add(struct poll_cq *cq)
{
	cq->count++;
	cq->event |= cq->armed;
	cq->armed = false;
}

/* In every mode and for every sequence of arrivals, a sleeping poller is woken. */
static void nothing_is_slept_over(void **state)
{
	uint32_t seed, steps;

	(void)state;
	for (seed = 0; seed < 2000; seed++) {
		unsigned int sleeps = 0;
		uint64_t random = seed;
		enum weir_poll_verdict verdict;
		struct poll_cq cq = { 0 };
		uint64_t now = 0;

		start(seed % 5, seed % 3);
		verdict = weir_poll_woken(&poller, 0);
		for (steps = 0; steps < 300; steps++) {
			uint32_t got;

			now += weir_rng_next(&random) % 2000;
			if (weir_rng_next(&random) % 3 == 0)
				cq_add(&cq);
			if (verdict == WEIR_POLL_SLEEP) {
				assert_true(cq.armed || cq.event);
				assert_true(cq.event || !cq.count);
				sleeps++;
				if (!cq.event)
					continue;
				cq.event = false;
				verdict = weir_poll_woken(&poller, now);
			}
			cq.armed |= verdict == WEIR_POLL_ARM;
			if (weir_rng_next(&random) % 3 == 0)
				cq_add(&cq);
			got = cq.count < 4 ? cq.count : 4;
			cq.count -= got;
			verdict = weir_poll_polled(&poller, got, now);
			if (verdict == WEIR_POLL_SLEEP)
				assert_int_equal(got, 0);
		}
		assert_true(sleeps > 0 || poller.config.mode == WEIR_POLL_BUSY ||
			    poller.config.mode == WEIR_POLL_ADAPTIVE);
	}
}

/*
 * A completion after each gap. A poll takes 100 ns; a wake-up takes @wake_ns, known to the
 * poller only roughly. Return: how often the poller slept in the last half.
 */
static unsigned int run(const uint64_t *gap_ns, unsigned int nr_gaps, unsigned int count,
			uint64_t wake_ns, uint64_t *empty_ns)
{
	enum weir_poll_verdict verdict = weir_poll_woken(&poller, poller.at_ns);
	uint64_t now = poller.at_ns, due = now, sleeps = 0, empty = 0;
	unsigned int i;

	for (i = 0; i < count; i++) {
		due = now + gap_ns[i % nr_gaps];
		if (i == count / 2) {
			sleeps = poller.sleeps;
			empty = poller.empty_polls;
		}
		for (;;) {
			if (verdict == WEIR_POLL_SLEEP) {
				now = (now > due ? now : due) + wake_ns;
				verdict = weir_poll_woken(&poller, now);
			}
			now += 100;
			verdict = weir_poll_polled(&poller, now >= due, now);
			if (now >= due)
				break;
		}
	}
	*empty_ns = (poller.empty_polls - empty) * 100;
	return (unsigned int)(poller.sleeps - sleeps);
}

static void short_gaps_are_polled_out(void **state)
{
	static const uint64_t gap = 10 * US;
	uint64_t empty_ns;

	(void)state;
	start(WEIR_POLL_ADAPTIVE, 0);
	assert_int_equal(run(&gap, 1, 1000, WAKE_NS, &empty_ns), 0);
}

static void long_gaps_are_slept_through(void **state)
{
	static const uint64_t gap = 400 * US;
	uint64_t empty_ns;

	(void)state;
	start(WEIR_POLL_ADAPTIVE, 0);
	assert_int_equal(run(&gap, 1, 1000, WAKE_NS, &empty_ns), 500);
	assert_true(empty_ns < 500 * gap / 100);
}

static void packs_are_polled_out_and_the_pauses_slept_through(void **state)
{
	static const uint64_t pack[] = { 2 * US, 3 * US, 2 * US, 5 * US, 900 * US };
	uint64_t empty_ns;

	(void)state;
	start(WEIR_POLL_ADAPTIVE, 0);
	assert_in_range(run(pack, 5, 2000, WAKE_NS, &empty_ns), 195, 205);
	assert_true(empty_ns < 200 * (12 + 20) * US);
}

/* Whatever a wake-up costs: sleep makes gaps look long, and the estimate must recover. */
static void gaps_that_become_short_are_noticed(void **state)
{
	static const uint64_t wakes[] = { 1 * US, 20 * US, 50 * US, 300 * US };
	static const uint64_t pause = 2000 * US, gap = 5 * US;
	uint64_t empty_ns;
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		start(WEIR_POLL_ADAPTIVE, 0);
		run(&pause, 1, 500, wakes[i], &empty_ns);
		assert_true(idle_time.budget_ns < 2 * US);
		assert_int_equal(run(&gap, 1, 20000, wakes[i], &empty_ns), 0);
	}
}

/* A poller that may spin for several wake-ups either polls through a gap or sleeps at once. */
static void no_poller_spins_and_then_sleeps(void **state)
{
	static const uint64_t wakes[] = { 1 * US, 20 * US, 40 * US };
	uint64_t empty_ns, gap;
	unsigned int i, slept;

	(void)state;
	for (i = 0; i < 3; i++) {
		for (gap = 20 * US; gap <= 600 * US; gap += 80 * US) {
			start_priced(WEIR_POLL_ADAPTIVE, 0, 250 * US, 10 * US);
			slept = run(&gap, 1, 320, wakes[i], &empty_ns);
			if (gap < 250 * US) {
				assert_int_equal(slept, 0);
			} else if (gap > 262 * US) {
				assert_int_equal(slept, 160);
				assert_true(empty_ns < 160 * (250 * US / 32 + 1 * US));
			}
		}
	}
}

static void gaps_that_become_long_are_noticed(void **state)
{
	static const uint64_t pause = 400 * US, gap = 5 * US;
	uint64_t empty_ns;

	(void)state;
	start(WEIR_POLL_ADAPTIVE, 0);
	run(&gap, 1, 5000, WAKE_NS, &empty_ns);
	run(&pause, 1, 1000, WAKE_NS, &empty_ns);
	assert_true(empty_ns < 500 * pause / 100);
}

static void empty_polls_keep_to_their_share(void **state)
{
	static const uint64_t gap = 20 * US;
	uint64_t before, empty_ns;

	(void)state;
	start(WEIR_POLL_ADAPTIVE, 0);
	poller.config.busy_percent_max = 30;
	run(&gap, 1, 1000, WAKE_NS, &empty_ns);
	before = poller.at_ns;
	empty_ns = poller.empty_polls * 100;
	run(&gap, 1, 4000, WAKE_NS, &(uint64_t){ 0 });
	empty_ns = poller.empty_polls * 100 - empty_ns;
	assert_true(empty_ns * 100 <= (poller.at_ns - before) * 31);
	assert_true(empty_ns * 100 >= (poller.at_ns - before) * 20);
}

static void a_poller_that_loses_its_cpu_sleeps_for_a_while(void **state)
{
	const uint64_t stall = 3000 * US;
	uint64_t now = 100 * US;

	(void)state;
	start(WEIR_POLL_ADAPTIVE, 0);
	weir_poll_woken(&poller, now);
	assert_int_equal(weir_poll_polled(&poller, 1, now), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 0, now + 1), WEIR_POLL_AGAIN);
	weir_idle_time_stalled(&idle_time, stall, now);
	assert_int_equal(weir_poll_polled(&poller, 0, now + 2), WEIR_POLL_ARM);
	assert_int_equal(weir_poll_polled(&poller, 1, now + 64 * stall - 2), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 0, now + 64 * stall - 1), WEIR_POLL_ARM);
	assert_int_equal(weir_poll_polled(&poller, 1, now + 64 * stall), WEIR_POLL_AGAIN);
	assert_int_equal(weir_poll_polled(&poller, 0, now + 64 * stall + 1), WEIR_POLL_AGAIN);
}

static void a_budget_costs_at_most_twice_the_best_before_anything_is_known(void **state)
{
	(void)state;
	weir_idle_time_init(&idle_time, WAKE_NS, WAKE_NS);
	assert_int_equal(weir_idle_time_budget_ns(&idle_time), WAKE_NS);
}

/* For any bucket boundary. */
static void gaps_below_the_price_of_a_wake_up_are_polled_out(void **state)
{
	uint32_t wake_ns, percent, i;

	(void)state;
	for (wake_ns = 1000; wake_ns <= WAKE_NS; wake_ns += 700) {
		for (percent = 10; percent <= 190; percent += 10) {
			uint64_t ns = (uint64_t)wake_ns * percent / 100;

			weir_idle_time_init(&idle_time, wake_ns, wake_ns);
			for (i = 0; i < 1000; i++)
				weir_idle_time_add(&idle_time, ns);
			if (percent < 100)
				assert_in_range(idle_time.budget_ns, ns, 2 * ns + 256);
			else if (percent > 100)
				assert_int_equal(idle_time.budget_ns, 0);
		}
	}
}

static void gaps_of_any_length_are_taken(void **state)
{
	(void)state;
	weir_idle_time_init(&idle_time, WAKE_NS, WAKE_NS);
	weir_idle_time_add(&idle_time, 0);
	assert_int_equal(idle_time.budget_ns, 256);
	weir_idle_time_add(&idle_time, UINT64_MAX);
	weir_idle_time_add(&idle_time, UINT64_MAX);
	assert_int_equal(idle_time.count[WEIR_IDLE_TIME_BUCKETS - 1], 2);
	assert_int_equal(idle_time.budget_ns, 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_never_sleeps),
		cmocka_unit_test(event_is_armed_before_it_looks),
		cmocka_unit_test(event_batch_ends_after_its_batch),
		cmocka_unit_test(hybrid_polls_while_there_is_something),
		cmocka_unit_test(retries_are_consecutive),
		cmocka_unit_test(waking_for_nothing_earns_no_new_budget),
		cmocka_unit_test(nothing_is_slept_over),
		cmocka_unit_test(short_gaps_are_polled_out),
		cmocka_unit_test(long_gaps_are_slept_through),
		cmocka_unit_test(packs_are_polled_out_and_the_pauses_slept_through),
		cmocka_unit_test(gaps_that_become_short_are_noticed),
		cmocka_unit_test(no_poller_spins_and_then_sleeps),
		cmocka_unit_test(gaps_that_become_long_are_noticed),
		cmocka_unit_test(empty_polls_keep_to_their_share),
		cmocka_unit_test(a_poller_that_loses_its_cpu_sleeps_for_a_while),
		cmocka_unit_test(a_budget_costs_at_most_twice_the_best_before_anything_is_known),
		cmocka_unit_test(gaps_below_the_price_of_a_wake_up_are_polled_out),
		cmocka_unit_test(gaps_of_any_length_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
