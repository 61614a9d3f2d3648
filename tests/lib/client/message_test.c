/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: lib message; devices: softnic rxe; timeout: 180 */
/* Messages and calls. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/rng.h"
#include "tests/support/libweir_fixture.h"

#define BULK (512u << 10)
#define PATIENCE_NS (60 * SECOND_NS) /* a virtual machine may pause, or lose a packet */

struct message_state {
	struct donor_process donor;
	struct weir_session *session;
	int handled; /* unsolicited messages from the donor */
	int handling;
	char last[64];
};

/* Report two concurrent calls of the handler. */
static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	struct message_state *s = arg;

	assert_null(peer);
	assert_null(call);
	assert_int_equal(__atomic_fetch_add(&s->handling, 1, __ATOMIC_ACQ_REL), 0);
	memcpy(s->last, data, length < sizeof(s->last) ? length : sizeof(s->last));
	__atomic_fetch_sub(&s->handling, 1, __ATOMIC_ACQ_REL);
	__atomic_fetch_add(&s->handled, 1, __ATOMIC_RELEASE);
}

static int setup(void **out)
{
	struct message_state *s = calloc(1, sizeof(*s));
	struct weir_session_options options = { .on_message = on_message,
						.arg = s,
						.timeout_ns = PATIENCE_NS };

	donor_process_start(&s->donor, "1048576", NULL);
	s->session = session_to(&s->donor, &options);
	*out = s;
	return 0;
}

static int teardown(void **in)
{
	struct message_state *s = *in;

	weir_session_close(s->session);
	donor_process_stop(&s->donor);
	free(s);
	return 0;
}

static void wait_handled(struct message_state *s, int count)
{
	uint64_t deadline_ns = now_ns() + PATIENCE_NS;

	while (__atomic_load_n(&s->handled, __ATOMIC_ACQUIRE) < count) {
		assert_true(now_ns() < deadline_ns);
		usleep(200);
	}
}

static void a_call_is_answered(void **in)
{
	struct message_state *s = *in;
	char *sent = malloc(WEIR_MESSAGE_MAX), *got = malloc(WEIR_MESSAGE_MAX);
	size_t length, got_length;

	for (length = 1; length <= WEIR_MESSAGE_MAX; length += length < 16 ? 1 : length / 3) {
		memset(sent, (int)length, length);
		sent[0] = 'e';
		assert_int_equal(
			weir_call(s->session, sent, length, got, WEIR_MESSAGE_MAX, &got_length), 0);
		assert_int_equal(got_length, length);
		assert_memory_equal(sent, got, length);
	}
	free(sent);
	free(got);
}

static void lengths_have_an_end(void **in)
{
	struct message_state *s = *in;
	char *sent = calloc(1, WEIR_MESSAGE_MAX + 1), got[4];
	size_t length;

	sent[0] = 'e';
	assert_int_equal(weir_send(s->session, sent, WEIR_MESSAGE_MAX + 1), -EMSGSIZE);
	assert_int_equal(weir_call(s->session, sent, WEIR_MESSAGE_MAX + 1, got, 4, &length),
			 -EMSGSIZE);
	assert_int_equal(weir_call(s->session, sent, 5, got, 4, &length), -EMSGSIZE);
	assert_int_equal(weir_call(s->session, sent, 4, got, 4, &length), 0);
	free(sent);
}

/* The donor refuses to answer while 256 of its messages wait for a slow reader. */
static void messages_come_back_in_order(void **in)
{
	struct message_state *s = *in;
	char text[16];
	int before = s->handled, i;

	for (i = 0; i < 1000; i++) {
		wait_handled(s, before + i - 200);
		snprintf(text, sizeof(text), "p%d", i);
		assert_int_equal(weir_send(s->session, text, sizeof(text)), 0);
	}
	wait_handled(s, before + 1000);
	assert_string_equal(s->last, "p999");
}

/* More unsolicited messages than credits, while a call waits. */
static void a_flood_arrives_whole(void **in)
{
	struct message_state *s = *in;
	int before = s->handled;
	char reply[8];
	size_t length;

	assert_int_equal(weir_call(s->session, "f", 1, reply, 8, &length), 0);
	wait_handled(s, before + 200);
	assert_int_equal(s->handled, before + 200);
}

static void an_unanswered_call_times_out(void **in)
{
	const struct weir_session_options impatient = { .timeout_ns = 2 * SECOND_NS };
	struct message_state *s = *in;
	struct weir_session *session = session_to(&s->donor, &impatient);
	uint64_t begin_ns = now_ns();
	char reply[8];
	size_t length;

	assert_int_equal(weir_call(session, "n", 1, reply, 8, &length), -ETIMEDOUT);
	assert_in_range(now_ns() - begin_ns, 2 * SECOND_NS, 5 * SECOND_NS);
	assert_int_equal(weir_call(session, "e", 1, reply, 8, &length), 0);
	weir_session_close(session);
}

struct answers {
	struct completion_tally tally;
	struct weir_session *session;
};

static void count_answer(void *arg, int status, const void *reply, size_t length)
{
	struct answers *answers = arg;

	if (!status && (length != 5 || memcmp(reply, "later", 5)))
		status = -EPROTO;
	tally_done(&answers->tally, status);
}

static bool goes_on(void *arg)
{
	int *asked = arg;

	return ++*asked < 3;
}

static void a_call_may_wait_as_long_as_its_caller_wants(void **in)
{
	const struct weir_session_options impatient = { .timeout_ns = 2 * SECOND_NS };
	struct message_state *s = *in;
	struct weir_session *session = session_to(&s->donor, &impatient);
	uint64_t begin_ns = now_ns();
	char reply[8];
	size_t length;
	int asked = 0;

	assert_int_equal(weir_call_while(session, "n", 1, reply, 8, &length, goes_on, &asked),
			 -ECANCELED);
	assert_int_equal(asked, 3);
	assert_in_range(now_ns() - begin_ns, 2 * SECOND_NS + SECOND_NS / 5, 5 * SECOND_NS);
	assert_int_equal(weir_call_while(session, "e1", 2, reply, 8, &length, goes_on, &asked), 0);
	assert_int_equal(length, 2);
	weir_session_close(session);
}

static void answers_may_come_later(void **in)
{
	struct message_state *s = *in;
	struct answers answers = { .session = s->session };
	int i;

	for (i = 0; i < 40; i++)
		assert_int_equal(weir_call_async(s->session, "l", 1, 0, count_answer, &answers), 0);
	tally_wait(&answers.tally, 40);
	assert_int_equal(answers.tally.status, 0);
}

static void an_async_call_has_its_own_time(void **in)
{
	struct message_state *s = *in;
	struct answers answers = { .session = s->session };
	uint64_t begin_ns = now_ns();

	assert_int_equal(
		weir_call_async(s->session, "n", 1, SECOND_NS / 10, count_answer, &answers), 0);
	tally_wait(&answers.tally, 1);
	assert_int_equal(answers.tally.status, -ETIMEDOUT);
	assert_true(now_ns() - begin_ns < 9 * SECOND_NS); /* the session's own timeout is longer */
}

/* The session's thread naps while callers poll, and must be awake when they have stopped. */
static void an_answer_is_not_slept_through(void **in)
{
	struct message_state *s = *in;
	struct answers answers = { .session = s->session };
	uint64_t begin_ns;
	char reply[8];
	size_t length;
	int i;

	for (i = 0; i < 200; i++)
		assert_int_equal(weir_call(s->session, "e", 1, reply, 8, &length), 0);
	usleep(20000);
	begin_ns = now_ns();
	assert_int_equal(weir_call_async(s->session, "l", 1, 0, count_answer, &answers), 0);
	tally_wait(&answers.tally, 1);
	assert_int_equal(answers.tally.status, 0);
	assert_true(now_ns() - begin_ns < 9 * SECOND_NS); /* a missed answer would be late */
}

static void count_again(void *arg, int status, const void *reply, size_t length)
{
	struct answers *answers = arg;
	bool is_last = answers->tally.done + 1 == 300; /* then the test may end at once */

	(void)reply;
	(void)length;
	tally_done(&answers->tally, status);
	if (!is_last)
		weir_call_async(answers->session, "e", 1, 0, count_again, answers);
}

static void a_callback_may_call(void **in)
{
	struct message_state *s = *in;
	struct answers answers = { .session = s->session };

	assert_int_equal(weir_call_async(s->session, "e", 1, 0, count_again, &answers), 0);
	tally_wait(&answers.tally, 300);
	assert_int_equal(answers.tally.status, 0);
}

/*
 * No thread polls while the session's timeout runs out, and a barrier holds the message back.
 * An accepted message still arrives.
 */
static void a_message_that_was_accepted_is_not_dropped(void **in)
{
	struct message_state *s = *in, own = { 0 };
	struct weir_session_options options = {
		.on_message = on_message, .arg = &own, .timeout_ns = SECOND_NS, .no_thread = true
	};
	struct completion_tally tally = { 0 };
	struct weir_completion forever = { .done = tally_done,
					   .arg = &tally,
					   .timeout_ns = UINT64_MAX };
	const size_t bulk = fixture_scaled(BULK);
	const int writes = (int)(200 * bulk / BULK);
	struct weir_session *session = session_to(&s->donor, &options);
	struct weir_region *region = region_of(session, bulk);
	uint64_t deadline_ns;
	struct weir_pool *pool;
	struct weir_iov iov = { .length = bulk };
	int i;

	assert_int_equal(weir_pool_create(session, bulk, 1, &pool, NULL), 0);
	iov.addr = weir_pool_get(pool);
	iov.memory = weir_pool_memory(pool);
	for (i = 0; i < writes; i++)
		assert_int_equal(weir_write_async(region, 0, &iov, 1, &forever, NULL), 0);
	assert_int_equal(weir_barrier_async(session, &forever), 0);
	assert_int_equal(weir_send(session, "p", 1), 0);
	usleep(1100000);
	deadline_ns = now_ns() + 60 * SECOND_NS;
	while (!own.handled && now_ns() < deadline_ns)
		weir_session_process(session);
	assert_int_equal(tally.done, writes + 1);
	assert_int_equal(tally.status, 0);
	assert_int_equal(own.handled, 1);
	weir_session_close(session);
}

#define CALLERS 6
#define CALLS 500

static void *call_often(void *arg)
{
	const int calls = fixture_rounds(CALLS);
	struct message_state *s = arg;
	char sent[300], got[300];
	uint64_t seed = (uintptr_t)&seed;
	size_t length;
	int i;

	for (i = 0; i < calls; i++) {
		size_t size = 1 + weir_rng_next(&seed) % sizeof(sent);

		memset(sent, (int)weir_rng_next(&seed), size);
		sent[0] = 'e';
		assert_int_equal(weir_call(s->session, sent, size, got, sizeof(got), &length), 0);
		assert_int_equal(length, size);
		assert_memory_equal(sent, got, size);
	}
	return NULL;
}

static void many_threads_call_at_once(void **in)
{
	pthread_t threads[CALLERS];
	int i;

	for (i = 0; i < CALLERS; i++)
		pthread_create(&threads[i], NULL, call_often, *in);
	for (i = 0; i < CALLERS; i++)
		pthread_join(threads[i], NULL);
}

static void count_only(void *arg, int status, const void *reply, size_t length)
{
	(void)reply;
	(void)length;
	tally_done(arg, status);
}

static void each_call_that_is_taken_is_answered(void **in)
{
	struct message_state *s = *in;
	struct completion_tally tally = { 0 };
	int i, taken = 0, rc;

	for (i = 0; i < 3000; i++) {
		rc = weir_call_async(s->session, "e", 1, 0, count_only, &tally);
		assert_true(rc == 0 || rc == -EAGAIN);
		taken += !rc;
	}
	assert_true(taken >= 1000);
	tally_wait(&tally, taken);
	assert_int_equal(tally.status, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_answered),
		cmocka_unit_test(lengths_have_an_end),
		cmocka_unit_test(messages_come_back_in_order),
		cmocka_unit_test(a_flood_arrives_whole),
		cmocka_unit_test(an_unanswered_call_times_out),
		cmocka_unit_test(a_call_may_wait_as_long_as_its_caller_wants),
		cmocka_unit_test(answers_may_come_later),
		cmocka_unit_test(an_async_call_has_its_own_time),
		cmocka_unit_test(an_answer_is_not_slept_through),
		cmocka_unit_test(a_callback_may_call),
		cmocka_unit_test(a_message_that_was_accepted_is_not_dropped),
		cmocka_unit_test(many_threads_call_at_once),
		cmocka_unit_test(each_call_that_is_taken_is_answered),
	};

	fixture_runs_on("softnic rxe");
	return cmocka_run_group_tests(tests, setup, teardown);
}
