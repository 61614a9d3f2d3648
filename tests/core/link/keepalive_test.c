/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keep-alive: when a session probes its links, and when it gives a link up. */
#include "core/link/keepalive.h"
#include "tests/support/engine_bench.h"

#define QUIET 100
#define TIMEOUT 1000

static struct weir_keepalive k;
static struct weir_link links[2];

static void begin(void)
{
	memset(links, 0, sizeof(links));
	weir_link_up(&links[0]);
	weir_link_up(&links[1]);
	weir_keepalive_init(&k, QUIET, TIMEOUT);
	weir_keepalive_start(&k, 0, 0);
}

static void probe_both(uint64_t now_ns)
{
	weir_keepalive_probed(&k, &links[0]);
	weir_keepalive_probed(&k, &links[1]);
	weir_keepalive_checked(&k, 2, now_ns);
}

static void a_check_probes_or_fails(void **state)
{
	static const struct {
		const char *sentence;
		enum weir_link_state state;
		bool is_probed, is_quiet;
		uint32_t in_flight;
		enum weir_keepalive_action action;
	} cases[] = {
		{ "a quiet link is probed", WEIR_LINK_UP, 0, 1, 0, WEIR_KEEPALIVE_PROBE },
		{ "a session that posts is not probed", WEIR_LINK_UP, 0, 0, 0,
		  WEIR_KEEPALIVE_NOTHING },
		{ "WRs in flight are probe enough", WEIR_LINK_UP, 0, 1, 1, WEIR_KEEPALIVE_NOTHING },
		{ "a link without an answer fails", WEIR_LINK_UP, 1, 1, 0, WEIR_KEEPALIVE_FAIL },
		{ "a post does not replace an answer", WEIR_LINK_UP, 1, 0, 1, WEIR_KEEPALIVE_FAIL },
		{ "a failing link is left alone", WEIR_LINK_FAILING, 1, 1, 0,
		  WEIR_KEEPALIVE_NOTHING },
		{ "a broken link is left alone", WEIR_LINK_BROKEN, 0, 1, 0,
		  WEIR_KEEPALIVE_NOTHING },
		{ "a link that never was up is left alone", WEIR_LINK_CLOSED, 0, 1, 0,
		  WEIR_KEEPALIVE_NOTHING },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct weir_link link = { .state = cases[i].state,
					  .is_probed = cases[i].is_probed,
					  .in_flight = { .count = cases[i].in_flight } };

		if (weir_keepalive_check(&link, cases[i].is_quiet) != cases[i].action)
			fail_msg("%s", cases[i].sentence);
	}
}

static void a_session_that_posts_is_not_quiet(void **state)
{
	(void)state;
	begin();
	assert_true(weir_keepalive_is_quiet(&k, 0));
	assert_false(weir_keepalive_is_quiet(&k, 1));
	weir_keepalive_checked(&k, 1, QUIET);
	assert_true(weir_keepalive_is_quiet(&k, 1));
}

static void the_timer_is_the_timeout_until_all_answer(void **state)
{
	(void)state;
	begin();
	assert_int_equal(k.due_ns, QUIET);
	probe_both(QUIET);
	assert_int_equal(k.due_ns, QUIET + TIMEOUT);
	weir_keepalive_answered(&k, &links[1], 200);
	assert_int_equal(k.due_ns, QUIET + TIMEOUT);
	weir_keepalive_answered(&k, &links[0], 300);
	assert_int_equal(k.due_ns, 300 + QUIET);
	weir_keepalive_checked(&k, 2, 400);
	assert_int_equal(k.due_ns, 400 + QUIET);
}

static void a_second_start_changes_nothing(void **state)
{
	(void)state;
	begin();
	weir_keepalive_start(&k, 5, 50);
	assert_int_equal(k.due_ns, QUIET);
	assert_true(weir_keepalive_is_quiet(&k, 0));
}

static void a_probe_is_answered_or_forgotten_once(void **state)
{
	(void)state;
	begin();
	probe_both(QUIET);
	assert_true(weir_keepalive_forget(&k, &links[0]));
	assert_false(weir_keepalive_forget(&k, &links[0]));
	assert_int_equal(k.unanswered, 1);
	weir_keepalive_answered(&k, &links[0], 200);
	assert_int_equal(k.unanswered, 1);
	assert_int_equal(k.due_ns, QUIET + TIMEOUT);
	weir_keepalive_answered(&k, &links[1], 200);
	assert_int_equal(k.unanswered, 0);
	assert_false(links[0].is_probed || links[1].is_probed);
}

static void a_stopped_timer_stays_stopped(void **state)
{
	(void)state;
	begin();
	probe_both(QUIET);
	weir_keepalive_stop(&k);
	weir_keepalive_answered(&k, &links[0], 200);
	weir_keepalive_answered(&k, &links[1], 200);
	assert_true(k.due_ns == WEIR_NEVER);
}

static void a_peer_that_is_heard_is_probed_later(void **state)
{
	(void)state;
	begin();
	weir_keepalive_heard(&k, 40);
	assert_int_equal(k.due_ns, 40 + QUIET);
	probe_both(140);
	weir_keepalive_heard(&k, 200);
	assert_int_equal(k.due_ns, 140 + TIMEOUT);
	weir_keepalive_forget(&k, &links[0]);
	weir_keepalive_forget(&k, &links[1]);
	weir_keepalive_heard(&k, 300);
	assert_int_equal(k.due_ns, 300 + QUIET);
}

static void an_endless_interval_is_never_over(void **state)
{
	(void)state;
	weir_keepalive_init(&k, WEIR_NEVER, TIMEOUT);
	weir_keepalive_start(&k, 0, 5);
	assert_true(k.due_ns == WEIR_NEVER);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SAYS("a check probes a quiet link, and fails one without an answer",
		     a_check_probes_or_fails),
		SAYS("a session that posts is not quiet", a_session_that_posts_is_not_quiet),
		SAYS("the timer is the timeout until all links have answered",
		     the_timer_is_the_timeout_until_all_answer),
		SAYS("a second start changes nothing", a_second_start_changes_nothing),
		SAYS("a probe is answered or forgotten once",
		     a_probe_is_answered_or_forgotten_once),
		SAYS("a stopped timer stays stopped", a_stopped_timer_stays_stopped),
		SAYS("a peer that is heard is probed later", a_peer_that_is_heard_is_probed_later),
		SAYS("an endless interval is never over", an_endless_interval_is_never_over),
	};

	return cmocka_run_group_tests_name("keepalive", tests, NULL, NULL);
}
