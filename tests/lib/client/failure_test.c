/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib failure; devices: softnic rxe; timeout: 180 */
/* Donors that die, slow requests, and cancelled requests. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/libweir_fixture.h"
#include "lib/client/message/call.h"
#include "lib/client/session_reconnect.h"
#include "lib/client/channel/pump.h"
#include "lib/client/request/request.h"
#include "lib/client/session.h"
#include "tests/support/stop_process.h"

#define PATIENCE_MS 60000 /* later means never */
#define DEAD_NS (10 * SECOND_NS) /* nothing may take longer after a death */

struct failure_state {
	struct donor_process donor;
	struct weir_session *session;
	struct weir_region *region;
	struct weir_pool *pool;
	struct completion_tally tally, down;
	uint64_t killed_ns;
};

static void on_down(void *arg, int status)
{
	struct failure_state *s = arg;

	tally_done(&s->down, status);
}

static int setup_with(void **out, struct weir_session_options options)
{
	struct failure_state *s = calloc(1, sizeof(*s));

	options.on_down = on_down;
	options.arg = s;
	donor_process_start(&s->donor, "67108864", NULL);
	s->session = session_to(&s->donor, &options);
	s->region = region_of(s->session, 32 * MIB);
	assert_int_equal(weir_pool_create(s->session, 16 * MIB, 2, &s->pool, NULL), 0);
	*out = s;
	return 0;
}

static int setup(void **out)
{
	return setup_with(out, (struct weir_session_options){ 0 });
}

static int setup_narrow(void **out)
{
	return setup_with(out, (struct weir_session_options){ TUNING(.window_bytes = 64 << 10) });
}

static int setup_driven(void **out)
{
	return setup_with(out, (struct weir_session_options){ .no_thread = true });
}

static int release(struct failure_state *s)
{
	weir_pool_destroy(s->pool);
	weir_region_close(s->region);
	weir_session_close(s->session);
	free(s);
	return 0;
}

static int teardown(void **in)
{
	struct failure_state *s = *in;

	donor_process_stop(&s->donor);
	return release(s);
}

/* The donor is already dead. */
static int teardown_dead(void **in)
{
	return release(*in);
}

static int try_to_submit(struct failure_state *s, size_t length, uint64_t timeout_ns,
			 struct completion_tally *tally, struct weir_request **request)
{
	struct weir_completion completion = { .done = tally_done,
					      .arg = tally,
					      .timeout_ns = timeout_ns };
	void *buffer = weir_pool_get(s->pool);
	struct weir_iov iov = { buffer, length, weir_pool_memory(s->pool) };
	int rc = weir_write_async(s->region, 0, &iov, 1, &completion, request);

	weir_pool_put(s->pool, buffer);
	return rc;
}

static struct weir_request *submit(struct failure_state *s, size_t length, uint64_t timeout_ns,
				   struct completion_tally *tally)
{
	struct weir_request *request = NULL;

	assert_int_equal(try_to_submit(s, length, timeout_ns, tally, &request), 0);
	return request;
}

static void *kill_when_one_is_done(void *arg)
{
	struct failure_state *s = arg;

	while (!__atomic_load_n(&s->tally.done, __ATOMIC_ACQUIRE))
		usleep(200);
	s->killed_ns = now_ns();
	donor_process_kill(&s->donor);
	return NULL;
}

/* Submit up to 100 at a time until an error. Return: the number submitted. */
static int submit_to_the_end(struct failure_state *s)
{
	int count = 0, rc;

	while (!(rc = try_to_submit(s, 16 * MIB, 0, &s->tally, NULL))) {
		count++;
		while (count - __atomic_load_n(&s->tally.done, __ATOMIC_ACQUIRE) == 100)
			usleep(1000);
	}
	assert_int_equal(rc, -ENOTCONN);
	return count;
}

/*
 * Return: whether a request was in flight then. On a device that finishes WRs in the post, none
 * is.
 */
static bool end_with_the_donor(struct failure_state *s)
{
	char reply[8], byte;
	pthread_t killer;
	size_t length;

	pthread_create(&killer, NULL, kill_when_one_is_done, s);
	tally_wait(&s->tally, submit_to_the_end(s));
	pthread_join(killer, NULL);
	tally_wait(&s->down, 1);
	assert_int_not_equal(s->down.status, 0);
	assert_int_equal(weir_read(s->region, 0, &byte, 1), -ENOTCONN);
	assert_int_equal(weir_send(s->session, "p", 1), -ENOTCONN);
	assert_int_equal(weir_call(s->session, "e", 1, reply, 8, &length), -ENOTCONN);
	assert_int_equal(weir_flush(s->session), -ENOTCONN);
	assert_true(now_ns() - s->killed_ns < DEAD_NS);
	return s->tally.status;
}

static void all_ends_when_the_donor_is_killed(void **in)
{
	bool any = false;
	void *s;
	int i;

	(void)in;
	for (i = 0; i < 100 && !any; i++) {
		setup(&s);
		any = end_with_the_donor(s);
		release(s);
	}
	assert_true(any);
}

static void *call_in_vain(void *arg)
{
	struct failure_state *s = arg;
	char reply[8];
	size_t length;

	return (void *)(intptr_t)weir_call(s->session, "n", 1, reply, 8, &length);
}

static bool is_called(struct weir_session *session)
{
	bool is = false;
	int i;

	weir_session_lock(session);
	for (i = 0; i < WIRE_CONTROL_CALLS_MAX; i++)
		is |= session->calls.callers[i].answer != NULL;
	weir_session_unlock(session);
	return is;
}

/* Kill the donor after the unanswered call has arrived: messages arrive in the order sent. */
static void *kill_when_called(void *arg)
{
	struct failure_state *s = arg;
	char reply[8];
	size_t length;

	while (!is_called(s->session))
		usleep(1000);
	assert_int_equal(weir_call(s->session, "e", 1, reply, 8, &length), 0);
	s->killed_ns = now_ns();
	donor_process_kill(&s->donor);
	return NULL;
}

static void who_waits_is_woken_when_the_donor_is_killed(void **in)
{
	struct failure_state *s = *in;
	pthread_t killer, caller;
	char *bytes = malloc(16 * MIB);
	void *called;
	int rc;

	pthread_create(&killer, NULL, kill_when_called, s);
	pthread_create(&caller, NULL, call_in_vain, s);
	do {
		rc = weir_write(s->region, 0, bytes, 16 * MIB);
	} while (!rc);
	assert_true(rc == -ECONNRESET || rc == -ENOTCONN);
	pthread_join(killer, NULL);
	pthread_join(caller, &called);
	assert_int_equal((intptr_t)called, -ECONNRESET);
	assert_true(now_ns() - s->killed_ns < DEAD_NS);
	free(bytes);
}

/*
 * The waiter consumes the wake-up of the descriptor. The descriptor must become readable again
 * to report the end.
 */
static void who_waits_does_not_hide_the_end(void **in)
{
	struct failure_state *s = *in;
	struct pollfd fd = { .fd = weir_session_fd(s->session), .events = POLLIN };
	pthread_t waiter, killer;
	char byte = 1;

	pthread_create(&waiter, NULL, call_in_vain, s);
	pthread_create(&killer, NULL, kill_when_called, s);
	while (!weir_write(s->region, 0, &byte, 1))
		;
	pthread_join(waiter, NULL);
	pthread_join(killer, NULL);
	while (!s->down.done && poll(&fd, 1, PATIENCE_MS) == 1)
		weir_session_process(s->session);
	assert_int_equal(s->down.done, 1);
}

static void a_killed_donor_does_not_harm_another_session(void **in)
{
	struct failure_state *s = *in;
	struct weir_session *session;
	struct weir_region *region;
	struct donor_process other;
	char byte = 1;

	donor_process_start(&other, "1048576", NULL);
	session = session_to(&other, NULL);
	region = region_of(session, 4096);
	submit(s, 16 * MIB, 0, &s->tally);
	donor_process_kill(&s->donor);
	tally_wait(&s->tally, 1);
	assert_int_equal(weir_write(region, 0, &byte, 1), 0);
	weir_region_close(region);
	weir_session_close(session);
	donor_process_stop(&other);
}

/* Cancel a request behind much work in a narrow window. Return: the result of weir_cancel(). */
static int cancel_the_last_of_many(struct failure_state *s)
{
	struct completion_tally first = { 0 }, last = { 0 };
	struct weir_request *request;
	int i, rc;

	for (i = 0; i < 10; i++)
		submit(s, fixture_scaled(4 * MIB), 0, &first);
	request = submit(s, 4096, 0, &last);
	rc = weir_cancel(request);
	tally_wait(&last, 1);
	assert_int_equal(last.status, rc ? 0 : -ECANCELED);
	tally_wait(&first, 10);
	assert_int_equal(first.status, 0);
	return rc;
}

/* The cancelling thread may be preempted and come too late, so several tries are allowed. */
static void what_is_not_posted_can_be_canceled(void **in)
{
	int rc, tries = 0;

	do {
		rc = cancel_the_last_of_many(*in);
		assert_true(!rc || rc == -EINPROGRESS);
	} while (rc && ++tries < 100);
	assert_int_equal(rc, 0);
}

/* A request waits in the NIC's inbox while the last channel of its session goes down. */
struct late_submit {
	struct failure_state *state;
	struct completion_tally tally, done;
	int canceled;
};

/* The next two requests are all zero, which looks like waiting requests. */
static void be_ready(struct weir_session *session)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct weir_request *request = calloc(1, sizeof(*request));

		request->session = session;
		weir_list_init(&request->link);
		weir_freelist_put(&session->spares, &request->node);
	}
}

/* Take the session down without emptying the inbox, as weir_session_lock() would. */
static void take_down(struct weir_session *session)
{
	weir_mutex_lock(&session->nic->lock);
	weir_session_reconnect_give_up(session, -ECONNRESET);
	while (!weir_session_is_down(session))
		weir_pump_poll(session, now_ns());
	weir_mutex_unlock(&session->nic->lock);
}

/* A request submitted in a callback only goes to the inbox. Without a thread it stays there. */
static void submit_too_late(void *arg, int status)
{
	struct late_submit *late = arg;
	struct weir_request *request;

	assert_int_equal(status, 0);
	request = submit(late->state, 4096, 0, &late->tally);
	take_down(late->state->session);
	late->canceled = weir_cancel(request);
	tally_done(&late->done, 0);
}

static void what_was_refused_cannot_be_canceled(void **in)
{
	struct failure_state *s = *in;
	struct late_submit late = { .state = s };
	struct weir_completion completion = { .done = submit_too_late, .arg = &late };

	be_ready(s->session);
	assert_int_equal(weir_barrier_async(s->session, &completion), 0);
	tally_wait(&late.done, 1);
	tally_wait(&late.tally, 1);
	assert_int_equal(late.canceled, -EINPROGRESS);
	assert_int_equal(late.tally.status, -ENOTCONN);
}

static void what_is_not_posted_in_time_ends(void **in)
{
	struct failure_state *s = *in;
	struct completion_tally last = { 0 };
	int i;

	for (i = 0; i < 30; i++)
		submit(s, fixture_scaled(4 * MIB), 0, &s->tally);
	submit(s, 4096, 1000000, &last);
	tally_wait(&last, 1);
	assert_int_equal(last.status, -ETIMEDOUT);
	tally_wait(&s->tally, 30);
	assert_int_equal(s->tally.status, 0);
	assert_int_equal(__atomic_load_n(&s->down.done, __ATOMIC_ACQUIRE), 0);
}

static void a_barrier_waits_for_all_and_holds_all(void **in)
{
	struct failure_state *s = *in;
	struct completion_tally barrier = { 0 };
	struct weir_completion completion = { .done = tally_done, .arg = &barrier };
	struct completion_tally after = { 0 };
	int i;

	for (i = 0; i < 10; i++)
		submit(s, fixture_scaled(16 * MIB), 0, &s->tally);
	assert_int_equal(weir_barrier_async(s->session, &completion), 0);
	submit(s, 64, 0, &after);
	tally_wait(&after, 1);
	/*
	 * This thread's callbacks have returned, and the session's thread runs the others in
	 * order.
	 */
	assert_int_equal(__atomic_load_n(&s->tally.done, __ATOMIC_ACQUIRE), 10);
	assert_int_equal(__atomic_load_n(&barrier.done, __ATOMIC_ACQUIRE), 1);
	assert_int_equal(s->tally.status, 0);
	assert_int_equal(barrier.status, 0);
	assert_int_equal(after.status, 0);
}

/* A stopped donor: reads and writes do not need its CPU. */
static void a_stopped_donor_still_lends(void **in)
{
	struct failure_state *s = *in;
	char byte = 42, got = 0;

	stop_process(s->donor.pid);
	assert_int_equal(weir_write(s->region, 5, &byte, 1), 0);
	assert_int_equal(weir_read(s->region, 5, &got, 1), 0);
	kill(s->donor.pid, SIGCONT);
	assert_int_equal(got, 42);
}

/* The NIC refuses a foreign rkey, and the rest of the session ends in order. */
static void a_forged_token_is_refused(void **in)
{
	struct failure_state *s = *in;
	struct weir_region_token token = { .addr = 1 << 20, .length = 4096, .rkey = 0x12345678 };
	struct weir_region *region;
	char byte = 0;

	assert_int_equal(weir_region_attach(s->session, &token, &region), 0);
	assert_int_equal(weir_write(region, 0, &byte, 1), -EACCES);
	weir_region_close(region);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ends_when_the_donor_is_killed),
		cmocka_unit_test_setup_teardown(who_waits_is_woken_when_the_donor_is_killed, setup,
						teardown_dead),
		cmocka_unit_test_setup_teardown(who_waits_does_not_hide_the_end, setup_driven,
						teardown_dead),
		cmocka_unit_test_setup_teardown(a_killed_donor_does_not_harm_another_session, setup,
						teardown_dead),
		cmocka_unit_test_setup_teardown(what_is_not_posted_can_be_canceled, setup_narrow,
						teardown),
		cmocka_unit_test_setup_teardown(what_was_refused_cannot_be_canceled, setup_driven,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_not_posted_in_time_ends, setup_narrow,
						teardown),
		cmocka_unit_test_setup_teardown(a_barrier_waits_for_all_and_holds_all, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_stopped_donor_still_lends, setup, teardown),
		cmocka_unit_test_setup_teardown(a_forged_token_is_refused, setup, teardown),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
