/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib ends; devices: softnic rxe; timeout: 180 */
/* A session tells a donor that closes from one that is killed. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/libweir_fixture.h"

#define PATIENCE_MS 60000 /* later means never */

struct ends_state {
	struct donor_process donor;
	struct weir_session *session;
	struct weir_region *region;
	struct completion_tally down;
};

static void on_down(void *arg, int status)
{
	tally_done(&((struct ends_state *)arg)->down, status);
}

static int setup_with(void **out, bool no_thread)
{
	struct ends_state *s = calloc(1, sizeof(*s));
	const struct weir_session_options options = {
		.no_thread = no_thread,
		.on_down = on_down,
		.arg = s,
	};

	assert_non_null(s);
	donor_process_start(&s->donor, "1048576", NULL);
	s->session = session_to(&s->donor, &options);
	s->region = region_of(s->session, 4096);
	*out = s;
	return 0;
}

static int setup(void **out)
{
	return setup_with(out, false);
}

static int setup_driven(void **out)
{
	return setup_with(out, true);
}

static int teardown(void **in)
{
	struct ends_state *s = *in;

	weir_region_close(s->region);
	weir_session_close(s->session);
	free(s);
	return 0;
}

static int down_status(const struct ends_state *s)
{
	struct weir_session_info info;

	assert_int_equal(weir_session_info(s->session, &info, sizeof(info)), 0);
	return info.down_status;
}

/* Both ways to learn why the session is down say the same. Return: why. */
static int wait_down(struct ends_state *s)
{
	char byte = 0;

	tally_wait(&s->down, 1);
	assert_int_equal(down_status(s), s->down.status);
	assert_int_equal(weir_write(s->region, 0, &byte, 1), -ENOTCONN);
	return s->down.status;
}

static void a_donor_that_closes_says_so(void **in)
{
	struct ends_state *s = *in;
	char byte = 1;

	assert_int_equal(weir_write(s->region, 0, &byte, 1), 0);
	assert_int_equal(down_status(s), 0);
	donor_process_stop(&s->donor);
	assert_int_equal(wait_down(s), -ENOTCONN);
}

static void a_donor_that_is_killed_says_nothing(void **in)
{
	struct ends_state *s = *in;
	int status;

	donor_process_kill(&s->donor);
	status = wait_down(s);
	assert_int_not_equal(status, 0);
	assert_int_not_equal(status, -ENOTCONN);
}

/* Without a thread, the descriptor tells, too. */
static void a_session_without_a_thread_learns_of_it(void **in)
{
	struct ends_state *s = *in;
	struct pollfd fd = { .fd = weir_session_fd(s->session), .events = POLLIN };

	donor_process_stop(&s->donor);
	while (!s->down.done && poll(&fd, 1, PATIENCE_MS) == 1)
		weir_session_process(s->session);
	assert_int_equal(s->down.status, -ENOTCONN);
}

static void count_end(void *arg, struct weir_peer *peer)
{
	unsigned int *ends = arg;

	__atomic_fetch_add(&ends[weir_peer_has_closed(peer)], 1, __ATOMIC_RELEASE);
}

/* Sessions of all kinds say that they close, even right after they were opened. */
static void a_session_that_closes_says_so(void **in)
{
	static const struct weir_session_options kinds[] = {
		{ .no_thread = false },
		{ .no_thread = true },
		{ .polling = WEIR_POLLING_SCQ },
	};
	unsigned int ends[2] = { 0 }, i;
	const struct weir_key *key = fixture_key();
	char listen[80];
	const struct weir_donor_options options = {
		.size = sizeof(options),
		.listen = listen,
		.keys = &key,
		.nr_keys = key ? 1 : 0,
		.memory_bytes = MIB,
		.on_leave = count_end,
		.arg = ends,
	};
	struct donor_process here = { 0 };
	struct weir_donor_info info;
	struct weir_donor *donor;

	(void)in;
	snprintf(listen, sizeof(listen), "%s:0", fixture_address());
	assert_int_equal(weir_donor_open(&options, &donor, NULL), 0);
	assert_int_equal(weir_donor_info(donor, &info, sizeof(info)), 0);
	memcpy(here.address, info.address, sizeof(here.address));
	for (i = 0; i < 3; i++)
		weir_session_close(session_to(&here, &kinds[i]));
	weir_donor_close(donor);
	assert_int_equal(ends[true], 3);
	assert_int_equal(ends[false], 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_donor_that_closes_says_so, setup, teardown),
		cmocka_unit_test_setup_teardown(a_donor_that_is_killed_says_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_session_without_a_thread_learns_of_it,
						setup_driven, teardown),
		cmocka_unit_test(a_session_that_closes_says_so),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
