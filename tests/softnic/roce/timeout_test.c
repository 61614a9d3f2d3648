// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test: softnic roce timeout */
/* When packets are sent again: by the round trips measured, and within the program's tries. */
#include "roce_fixture.h"

enum { EARLY_NS = 100, TRIP_NS = 1000 };

static struct roce_sent sent, other;

static int setup(void **state)
{
	(void)state;
	roce_setup(ROCE_RC);
	a.qp.req.timeout.min_ns = EARLY_NS;
	return 0;
}

/* A write whose answer takes @ns. */
static void write_in(uint64_t ns)
{
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_expect(&a, ROCE_WRITE_ONLY, &sent);
	roce_deliver(&b, &sent);
	roce_expect(&b, ROCE_ACK, &other);
	roce_wait(&a, ns);
	roce_deliver(&a, &other);
	roce_expect_completion(&a, ROCE_SUCCESS);
}

static uint64_t wait_of_lost_write(void)
{
	roce_post(&a, ROCE_OP_WRITE, 1);
	roce_expect(&a, ROCE_WRITE_ONLY, &sent);
	return roce_qp_deadline_ns(&a.qp) - a.now_ns;
}

static void test_unmeasured_the_programs_timeout_counts(void **state)
{
	(void)state;
	assert_int_equal(wait_of_lost_write(), FIXTURE_TIMEOUT_NS);
}

static void test_short_round_trips_shorten_the_wait(void **state)
{
	uint64_t wait_ns;
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		write_in(TRIP_NS);
	wait_ns = wait_of_lost_write();
	assert_in_range(wait_ns, TRIP_NS - 10, 2 * TRIP_NS);
	roce_wait(&a, wait_ns);
	roce_expect(&a, ROCE_WRITE_ONLY, &sent);
	roce_deliver(&b, &sent);
	roce_settle();
	roce_expect_completion(&a, ROCE_SUCCESS);
}

static void test_the_wait_has_bounds(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		write_in(1);
	assert_int_equal(wait_of_lost_write(), EARLY_NS);
	setup(state);
	write_in(FIXTURE_TIMEOUT_NS - 1);
	assert_int_equal(wait_of_lost_write(), FIXTURE_TIMEOUT_NS);
}

static void test_uneven_round_trips_lengthen_the_wait(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		write_in(i % 2 ? TRIP_NS : 9 * TRIP_NS);
	assert_in_range(wait_of_lost_write(), 9 * TRIP_NS, 40 * TRIP_NS);
}

/* The answer of a packet that was sent twice may be the first one's. */
static void test_a_packet_sent_again_measures_nothing(void **state)
{
	uint64_t wait_ns;

	(void)state;
	write_in(TRIP_NS);
	wait_ns = wait_of_lost_write();
	roce_deliver(&b, &sent);
	roce_wait(&a, wait_ns);
	roce_expect(&a, ROCE_WRITE_ONLY, &sent);
	roce_expect(&b, ROCE_ACK, &other);
	roce_deliver(&a, &other);
	roce_expect_completion(&a, ROCE_SUCCESS);
	assert_int_equal(wait_of_lost_write(), wait_ns);
}

/* Packets go out again and again, ever more slowly, but the peer has the time that was set. */
static void test_early_packets_use_up_no_retries(void **state)
{
	uint64_t begin_ns, wait_ns, last_ns = 0;
	int packets = 0;

	(void)state;
	write_in(TRIP_NS);
	roce_post(&a, ROCE_OP_WRITE, 1);
	begin_ns = a.now_ns;
	while (roce_sent(&a, &sent)) {
		wait_ns = roce_qp_deadline_ns(&a.qp) - a.now_ns;
		assert_in_range(wait_ns, last_ns, FIXTURE_TIMEOUT_NS);
		last_ns = wait_ns;
		packets++;
		roce_wait(&a, wait_ns);
	}
	roce_expect_completion(&a, ROCE_RETRY_EXC);
	assert_in_range(packets, 5, 20);
	assert_in_range(a.now_ns - begin_ns, 3 * FIXTURE_TIMEOUT_NS, 6 * FIXTURE_TIMEOUT_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_unmeasured_the_programs_timeout_counts, setup),
		cmocka_unit_test_setup(test_short_round_trips_shorten_the_wait, setup),
		cmocka_unit_test_setup(test_the_wait_has_bounds, setup),
		cmocka_unit_test_setup(test_uneven_round_trips_lengthen_the_wait, setup),
		cmocka_unit_test_setup(test_a_packet_sent_again_measures_nothing, setup),
		cmocka_unit_test_setup(test_early_packets_use_up_no_retries, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
