/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The states of a link. */
#include "core/link/link.h"
#include "tests/support/engine_bench.h"

#define CLOSED WEIR_LINK_CLOSED
#define UP WEIR_LINK_UP
#define FAILING WEIR_LINK_FAILING
#define BROKEN WEIR_LINK_BROKEN
#define DOWN WEIR_LINK_DOWN

static void only_a_link_that_is_up_fails(void **state)
{
	static const enum weir_link_state afters[] = { CLOSED, FAILING, FAILING, BROKEN, DOWN };
	int i;

	(void)state;
	for (i = CLOSED; i <= DOWN; i++) {
		struct weir_link link = { .state = (enum weir_link_state)i };

		assert_int_equal(weir_link_fail(&link), i == UP);
		assert_int_equal(link.state, afters[i]);
	}
}

static void a_link_comes_up_and_again(void **state)
{
	struct weir_link link = { .state = CLOSED };

	(void)state;
	assert_true(weir_link_may_connect(&link));
	weir_link_up(&link);
	assert_int_equal(link.state, UP);
	assert_false(weir_link_may_connect(&link));
	link.in_flight.unsignalled = 3;
	assert_true(weir_link_fail(&link));
	assert_false(weir_link_may_connect(&link));
	assert_true(weir_link_settle(&link, true, true));
	assert_true(weir_link_may_connect(&link));
	weir_link_up(&link);
	assert_int_equal(link.state, UP);
	assert_int_equal(link.in_flight.unsignalled, 0);
}

static void a_failing_link_settles(void **state)
{
	static const struct {
		const char *sentence;
		enum weir_link_state before;
		uint32_t in_flight;
		bool is_probed, is_read, may_reconnect;
		enum weir_link_state after;
		bool is_posting;
	} cases[] = {
		{ "with nothing in flight, it is broken", FAILING, 0, 0, 1, 1, BROKEN },
		{ "it waits for its WRs", FAILING, 1, 0, 1, 1, FAILING },
		{ "it waits for its probe", FAILING, 0, 1, 1, 1, FAILING },
		{ "it waits for a thread that posts", FAILING, 0, 0, 1, 1, FAILING, true },
		{ "it waits for messages to be read", FAILING, 0, 0, 0, 1, FAILING },
		{ "a session that ends waits as well", FAILING, 1, 0, 1, 0, FAILING },
		{ "of a session that ends, it is down", FAILING, 0, 0, 1, 0, DOWN },
		{ "a broken link waits to reconnect", BROKEN, 0, 0, 1, 1, BROKEN },
		{ "a broken link goes down with its session", BROKEN, 0, 0, 0, 0, DOWN },
		{ "a link that is up stays up", UP, 0, 0, 1, 0, UP },
		{ "a link that never was up stays closed", CLOSED, 0, 0, 1, 0, CLOSED },
		{ "a link that is down stays down", DOWN, 0, 0, 1, 1, DOWN },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct weir_link link = { .state = cases[i].before,
					  .is_probed = cases[i].is_probed,
					  .is_posting = cases[i].is_posting,
					  .in_flight = { .count = cases[i].in_flight } };
		bool has_changed =
			weir_link_settle(&link, cases[i].is_read, cases[i].may_reconnect);

		if (link.state != cases[i].after || has_changed != (link.state != cases[i].before))
			fail_msg("%s: the state is %d", cases[i].sentence, (int)link.state);
	}
}

static void a_link_closes_in_any_state(void **state)
{
	int i;

	(void)state;
	for (i = CLOSED; i <= DOWN; i++) {
		struct weir_link link = { .state = (enum weir_link_state)i };

		weir_link_close(&link);
		assert_true(weir_link_may_connect(&link));
	}
}

static void only_wrs_in_flight_need_a_drain(void **state)
{
	struct weir_link link = { .state = FAILING };

	(void)state;
	assert_false(weir_link_needs_drain(&link));
	link.in_flight.count = 1;
	assert_true(weir_link_needs_drain(&link));
}

static void a_chain_is_in_flight_once_its_post_has_ended(void **state)
{
	struct weir_link link = { .state = UP };
	struct weir_wr wrs[3] = { { .next = &wrs[1] }, { .next = &wrs[2] } };

	(void)state;
	weir_link_begin_post(&link);
	assert_int_equal(link.in_flight.count, 0);
	assert_ptr_equal(weir_link_end_post(&link, wrs, 2), &wrs[2]);
	assert_int_equal(link.in_flight.count, 2);
	weir_link_begin_post(&link);
	assert_ptr_equal(weir_link_end_post(&link, &wrs[2], 0), &wrs[2]);
	assert_int_equal(link.in_flight.count, 2);
	weir_link_begin_post(&link);
	assert_null(weir_link_end_post(&link, &wrs[2], 1));
	assert_int_equal(link.in_flight.count, 3);
	assert_ptr_equal(link.in_flight.oldest, &wrs[0]);
	assert_ptr_equal(link.in_flight.newest, &wrs[2]);
}

static void the_drain_comes_after_a_post_under_way(void **state)
{
	struct weir_wr wrs[2] = { { NULL }, { NULL } };
	struct weir_link link = { .state = UP };

	(void)state;
	weir_in_flight_append(&link.in_flight, &wrs[0], 1);
	weir_link_begin_post(&link);
	assert_true(weir_link_fail(&link));
	assert_false(weir_link_needs_drain(&link));
	assert_null(weir_link_end_post(&link, &wrs[1], 1));
	assert_int_equal(link.state, FAILING);
	assert_true(weir_link_needs_drain(&link));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SAYS("only a link that is up fails, once", only_a_link_that_is_up_fails),
		SAYS("a link comes up, and again after it has broken", a_link_comes_up_and_again),
		SAYS("a failing link is broken or down once nothing is in flight",
		     a_failing_link_settles),
		SAYS("a link closes in any state, and may come up again",
		     a_link_closes_in_any_state),
		SAYS("only WRs in flight need a drain", only_wrs_in_flight_need_a_drain),
		SAYS("a chain is in flight once its post has ended",
		     a_chain_is_in_flight_once_its_post_has_ended),
		SAYS("the drain comes after a post under way",
		     the_drain_comes_after_a_post_under_way),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
