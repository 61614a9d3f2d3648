/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib keepalive; devices: softnic rxe; timeout: 180 */
/* Idle sessions notice failures too. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/libweir_fixture.h"
#include "lib/client/session.h"
#include "tests/support/stop_process.h"

#define CHANNELS 2u
#define OFTEN_NS (SECOND_NS / 20)

struct keepalive_state {
	struct donor_process donor;
	struct weir_session *session;
	struct weir_region *region;
};

static int setup_with(void **out, struct weir_session_options options)
{
	struct keepalive_state *s = calloc(1, sizeof(*s));

	options.channels = CHANNELS;
	donor_process_start(&s->donor, "67108864", NULL);
	s->session = session_to(&s->donor, &options);
	s->region = region_of(s->session, 4096);
	*out = s;
	return 0;
}

static int setup(void **out)
{
	return setup_with(out, (struct weir_session_options){ .keepalive_ns = OFTEN_NS });
}

static int setup_driven(void **out)
{
	return setup_with(out, (struct weir_session_options){ .keepalive_ns = OFTEN_NS,
							      .no_thread = true });
}

static int setup_of_all(void **out)
{
	return setup_with(out, (struct weir_session_options){ .keepalive_ns = OFTEN_NS,
							      .polling = WEIR_POLLING_SCQ });
}

static int setup_silent(void **out)
{
	return setup_with(out, (struct weir_session_options){ .keepalive_ns = UINT64_MAX });
}

static int teardown(void **in)
{
	struct keepalive_state *s = *in;

	weir_region_close(s->region);
	weir_session_close(s->session);
	donor_process_stop(&s->donor);
	free(s);
	return 0;
}

static struct weir_session_info info_of(const struct keepalive_state *s)
{
	struct weir_session_info info;

	weir_session_info(s->session, &info, sizeof(info));
	return info;
}

/* Break a QP as a pulled cable does. Nothing is in flight, so nothing reports the failure. */
static void break_in_silence(struct keepalive_state *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	weir_session_lock(s->session);
	assert_int_equal(s->session->links[1].core.state, WEIR_LINK_UP);
	assert_int_equal(s->session->links[1].core.in_flight.count, 0);
	assert_int_equal(ibv_modify_qp(s->session->links[1].id->qp, &attr, IBV_QP_STATE), 0);
	weir_session_unlock(s->session);
}

/* Without a thread the session's descriptor says when there is work. */
static void wait_a_little(struct keepalive_state *s)
{
	struct pollfd fd = { .fd = weir_session_fd(s->session), .events = POLLIN };

	if (!s->session->options.no_thread)
		usleep(1000);
	else if (poll(&fd, 1, 100) == 1)
		weir_session_process(s->session);
}

static void all_works(struct keepalive_state *s)
{
	char byte = 42, got = 0;

	assert_int_equal(weir_write(s->region, 7, &byte, 1), 0);
	assert_int_equal(weir_read(s->region, 7, &got, 1), 0);
	assert_int_equal(got, 42);
}

static void what_breaks_in_silence_is_mended(void **in)
{
	struct keepalive_state *s = *in;
	uint64_t until_ns = now_ns() + 60 * SECOND_NS;

	break_in_silence(s);
	while (!info_of(s).reconnects || info_of(s).channels < CHANNELS) {
		assert_true(now_ns() < until_ns);
		wait_a_little(s);
	}
	all_works(s);
}

/* The donor's memory is still there, and its NIC answers. */
static void a_stopped_donor_is_alive(void **in)
{
	struct keepalive_state *s = *in;
	uint64_t until_ns = now_ns() + 60 * SECOND_NS, before = info_of(s).work_requests;

	stop_process(s->donor.pid);
	while (info_of(s).work_requests < before + 3 * CHANNELS && now_ns() < until_ns)
		wait_a_little(s);
	kill(s->donor.pid, SIGCONT);
	assert_true(info_of(s).work_requests >= before + 3 * CHANNELS);
	assert_int_equal(info_of(s).channels, CHANNELS);
	assert_int_equal(info_of(s).errors, 0);
	assert_int_equal(info_of(s).reconnects, 0);
	all_works(s);
}

static void who_wants_none_asks_nothing(void **in)
{
	struct keepalive_state *s = *in;
	uint64_t before = info_of(s).work_requests;

	usleep(3 * OFTEN_NS / 1000);
	assert_int_equal(info_of(s).work_requests, before);
	assert_true(s->session->keepalive.due_ns == UINT64_MAX);
}

static void too_often_is_refused(void **in)
{
	const struct keepalive_state *s = *in;
	struct weir_session_options options = { .size = sizeof(options),
						.key = fixture_key(),
						.keepalive_ns = 999999 };
	struct weir_session *session;

	assert_int_equal(weir_session_open(s->donor.address, &options, &session, NULL), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_breaks_in_silence_is_mended, setup, teardown),
		{ "what_breaks_in_silence_is_mended_without_a_thread",
		  what_breaks_in_silence_is_mended, setup_driven, teardown },
		{ "what_breaks_in_silence_on_the_queue_of_all_sessions_is_mended",
		  what_breaks_in_silence_is_mended, setup_of_all, teardown },
		cmocka_unit_test_setup_teardown(a_stopped_donor_is_alive, setup, teardown),
		cmocka_unit_test_setup_teardown(who_wants_none_asks_nothing, setup_silent,
						teardown),
		cmocka_unit_test_setup_teardown(too_often_is_refused, setup_silent, teardown),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
