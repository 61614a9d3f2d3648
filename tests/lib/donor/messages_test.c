/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: donor messages; suites: donor; devices: softnic rxe; timeout: 120 */
/*
 * Messages and calls: honest messages arrive in order; malformed ones end their client and no
 * other.
 */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/donor_fixture.h"

/* The first byte of a message selects the application's action. */
enum { ECHO = 'e', LATER = 'l', KEEP = 'k', TOO_LONG = 't', PUSH = 'p' };

static struct donor_fixture f;
static struct raw_client a, b;

static struct {
	pthread_mutex_t lock;
	unsigned int joined, left, oneway;
	char last[WEIR_MESSAGE_MAX];
	size_t last_length;
	struct weir_call *kept[2048];
	unsigned int nr_kept;
	int push_full;
} app = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void reply_later(void *arg)
{
	weir_reply(arg, "later", 5);
}

static void push(struct weir_peer *peer)
{
	char message[8000] = "push";
	unsigned int i;
	int rc = 0;

	for (i = 0; i < 1000 && !rc; i++) {
		memcpy(message + 4, &i, sizeof(i));
		rc = weir_peer_send(peer, message, sizeof(message));
	}
	app.push_full = rc == -EAGAIN ? (int)i - 1 : -1;
}

static void on_message(void *arg, struct weir_peer *peer, struct weir_call *call, const void *data,
		       size_t length)
{
	static char too_long[WEIR_MESSAGE_MAX + 1];
	char what = length ? *(const char *)data : 0;

	(void)arg;
	pthread_mutex_lock(&app.lock);
	if (!call) {
		app.oneway++;
		memcpy(app.last, data, length);
		app.last_length = length;
		if (what == PUSH)
			push(peer);
	} else if (what == ECHO) {
		weir_reply(call, data, length);
	} else if (what == LATER) {
		weir_donor_after(f.donor, 20, reply_later, call);
	} else if (what == TOO_LONG) {
		assert_int_equal(weir_reply(call, too_long, sizeof(too_long)), -EMSGSIZE);
	} else {
		app.kept[app.nr_kept++] = call;
	}
	pthread_mutex_unlock(&app.lock);
}

static void on_join(void *arg, struct weir_peer *peer)
{
	(void)arg;
	assert_int_equal(weir_peer_send(peer, "welcome", 7), 0);
	pthread_mutex_lock(&app.lock);
	app.joined++;
	pthread_mutex_unlock(&app.lock);
}

static void on_leave(void *arg, struct weir_peer *peer)
{
	(void)arg;
	assert_int_equal(weir_peer_send(peer, "x", 1), -ENOTCONN);
	pthread_mutex_lock(&app.lock);
	app.left++;
	pthread_mutex_unlock(&app.lock);
}

static unsigned int app_read(const unsigned int *what)
{
	unsigned int value;

	pthread_mutex_lock(&app.lock);
	value = *what;
	pthread_mutex_unlock(&app.lock);
	return value;
}

static void expect_message(struct raw_client *raw, enum wire_control_kind kind, uint64_t tag,
			   const char *text)
{
	char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_head head;

	assert_int_equal(raw_answer(raw, &head, body, SOON_MS), 0);
	assert_int_equal(head.kind, kind);
	assert_int_equal(head.tag, tag);
	assert_int_equal(head.status, 0);
	assert_int_equal(head.length, strlen(text));
	assert_memory_equal(body, text, strlen(text));
}

static int setup(void **state)
{
	const struct weir_donor_options options = {
		.on_message = on_message,
		.on_join = on_join,
		.on_leave = on_leave,
	};

	(void)state;
	app.joined = app.left = app.oneway = app.nr_kept = 0;
	donor_fixture_start(&f, &options);
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	assert_int_equal(raw_open(&b, f.info.address, &key_b), 0);
	expect_message(&a, WIRE_APP_ONEWAY, 0, "welcome");
	expect_message(&b, WIRE_APP_ONEWAY, 0, "welcome");
	return 0;
}

static int teardown(void **state)
{
	unsigned int i;

	(void)state;
	raw_close(&a);
	raw_close(&b);
	assert_soon(app_read(&app.left) == app_read(&app.joined));
	donor_fixture_stop(&f);
	/* A call may outlive its client, and the donor too. */
	for (i = 0; i < app.nr_kept; i++)
		if (app.kept[i])
			assert_int_equal(weir_reply(app.kept[i], "", 0), -ENOTCONN);
	return 0;
}

static void assert_others_do_not_notice(void)
{
	assert_int_equal(raw_message(&b, WIRE_APP_CALL, 77, "e still here", 12), 0);
	expect_message(&b, WIRE_APP_REPLY, 77, "e still here");
	assert_int_equal(app_read(&app.left), 1);
}

/* Copy the last message to @to. Return: its length. */
static size_t app_last(char *to)
{
	size_t length;

	pthread_mutex_lock(&app.lock);
	length = app.last_length;
	memcpy(to, app.last, length);
	pthread_mutex_unlock(&app.lock);
	return length;
}

static void a_message_arrives_as_it_was_sent(void **state)
{
	static char longest[WEIR_MESSAGE_MAX], last[WEIR_MESSAGE_MAX];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(raw_message(&a, WIRE_APP_ONEWAY, 0, longest, sizeof(longest)), 0);
	assert_soon(app_read(&app.oneway) == 1);
	assert_int_equal(app_last(last), sizeof(longest));
	assert_memory_equal(last, longest, sizeof(longest));
	assert_int_equal(raw_message(&a, WIRE_APP_ONEWAY, 0, NULL, 0), 0);
	assert_soon(app_read(&app.oneway) == 2);
	assert_int_equal(app_last(last), 0);
}

static void calls_are_answered_now_or_later(void **state)
{
	(void)state;
	assert_int_equal(raw_message(&a, WIRE_APP_CALL, 2, "l", 1), 0);
	assert_int_equal(raw_message(&a, WIRE_APP_CALL, 1, "e now", 5), 0);
	expect_message(&a, WIRE_APP_REPLY, 1, "e now");
	expect_message(&a, WIRE_APP_REPLY, 2, "later");
}

static void an_answer_that_is_too_long_comes_empty(void **state)
{
	struct wire_control_head head;
	char body[WIRE_CONTROL_BODY_MAX];

	(void)state;
	assert_int_equal(raw_message(&a, WIRE_APP_CALL, 9, "t", 1), 0);
	assert_int_equal(raw_answer(&a, &head, body, SOON_MS), 0);
	assert_int_equal(head.status, -EMSGSIZE);
	assert_int_equal(head.length, 0);
	assert_int_equal(head.tag, 9);
}

static void thousands_of_calls_keep_the_credits_going(void **state)
{
	char body[64];
	struct wire_control_head head;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2000; i++) {
		snprintf(body, sizeof(body), "e %u", i);
		assert_int_equal(raw_message(&a, WIRE_APP_CALL, i, body, strlen(body)), 0);
		expect_message(&a, WIRE_APP_REPLY, i, body);
	}
	/* One way only: the donor returns credits in bare credit messages. */
	for (i = 0; i < 2000; i++)
		while (raw_message(&a, WIRE_APP_ONEWAY, 0, "x", 1) == -EAGAIN)
			assert_int_equal(raw_answer(&a, &head, body, 10), -ETIMEDOUT);
	assert_soon(app_read(&app.oneway) == 2000);
}

static void who_reads_too_slowly_is_not_sent_more(void **state)
{
	char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_head head;
	unsigned int seen;
	int i;

	(void)state;
	assert_int_equal(raw_message(&a, WIRE_APP_ONEWAY, 0, "p", 1), 0);
	assert_soon(app_read(&app.oneway) == 1);
	assert_in_range(app.push_full, 256, 400);
	/* Once the client reads again, all accepted messages arrive in order. */
	for (i = 0; i < app.push_full; i++) {
		assert_int_equal(raw_answer(&a, &head, body, SOON_MS), 0);
		memcpy(&seen, body + 4, sizeof(seen));
		assert_int_equal(seen, i);
	}
	assert_int_equal(raw_answer(&a, &head, body, 50), -ETIMEDOUT);
}

static void malformed_messages_end_the_client(void **state)
{
	static const struct {
		struct wire_control_head head;
		size_t body;
	} cases[] = {
		{ { .kind = WIRE_APP_ONEWAY, .length = 8 }, 4 },
		{ { .kind = WIRE_APP_ONEWAY, .length = 8 }, 16 },
		{ { .kind = WIRE_APP_ONEWAY, .length = UINT32_MAX }, 16 },
		{ { .kind = 0, .length = 0 }, 0 },
		{ { .kind = 99, .length = 0 }, 0 },
		{ { .kind = WIRE_APP_REPLY, .length = 0 }, 0 },
		{ { .kind = WIRE_CONTROL_REPLY, .length = 0 }, 0 },
		{ { .kind = WIRE_CONTROL_CREDIT, .length = 4 }, 4 },
		{ { .kind = WIRE_CONTROL_CREDIT, .credits = 1000 }, 0 },
		{ { .kind = WIRE_CONTROL_CALL, .length = 3 }, 3 },
		{ { .kind = WIRE_CONTROL_CALL, .length = 100 }, 100 },
	};
	char message[WIRE_CONTROL_MESSAGE_BYTES];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(message, 0xcc, sizeof(message));
		memcpy(message, &cases[i].head, sizeof(cases[i].head));
		raw_send(&a, message, sizeof(cases[i].head) + cases[i].body);
		assert_true(raw_is_cut_off(&a, SOON_MS));
		raw_close(&a);
		assert_soon(app_read(&app.left) == i + 1);
		assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	}
	raw_close(&a);
	assert_int_equal(raw_open(&a, f.info.address, &key_a), 0);
	raw_send(&a, message, 5); /* less than a head */
	assert_true(raw_is_cut_off(&a, SOON_MS));
	assert_int_equal(raw_message(&b, WIRE_APP_CALL, 7, "e", 1), 0);
	expect_message(&b, WIRE_APP_REPLY, 7, "e");
}

static void longer_than_a_buffer_ends_the_client(void **state)
{
	static char message[2 * WIRE_CONTROL_MESSAGE_BYTES];

	(void)state;
	assert_int_not_equal(raw_send(&a, message, sizeof(message)), 0);
	assert_true(raw_is_cut_off(&a, SOON_MS));
	assert_soon(app_read(&app.left) == 1);
	assert_others_do_not_notice();
}

/* The completion has the length of the write, and the buffer holds none of the data. */
static void a_write_with_immediate_is_no_message(void **state)
{
	struct wire_control_region region;

	(void)state;
	assert_int_equal(raw_create(&a, NULL, MIB, 0, &region), 0);
	raw_write_imm(&a, region.addr, region.rkey, RAW_DATA);
	assert_true(raw_is_cut_off(&a, SOON_MS));
	assert_soon(app_read(&app.left) == 1);
	assert_others_do_not_notice();
}

/* The client sends without end, and never gives the donor a credit to grant more with. */
static void who_sends_without_credits_is_cut_off(void **state)
{
	const struct wire_control_head head = { .kind = WIRE_APP_ONEWAY };
	unsigned int i;

	(void)state;
	for (i = 0; i < 2000 && !raw_send(&a, &head, sizeof(head)); i++)
		;
	assert_in_range(i, WEIR_CREDITS_MIN, 1000);
	assert_true(raw_is_cut_off(&a, SOON_MS));
	assert_soon(app_read(&app.left) == 1);
	assert_others_do_not_notice();
}

static void a_name_that_is_none_is_answered(void **state)
{
	struct wire_control_request request = { .op = WIRE_REGION_OPEN, .name_length = 3 };
	char call[sizeof(request) + 3], body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_head head;

	(void)state;
	memcpy(call, &request, sizeof(request));
	memcpy(call + sizeof(request), "a/b", 3);
	assert_int_equal(raw_message(&a, WIRE_CONTROL_CALL, 3, call, sizeof(call)), 0);
	assert_int_equal(raw_answer(&a, &head, body, SOON_MS), 0);
	assert_int_equal(head.status, -EINVAL);
	assert_true(head.length > 0);
}

static void more_calls_open_than_allowed_end_the_client(void **state)
{
	char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_head head;
	unsigned int i;

	(void)state;
	for (i = 0; i < WIRE_CONTROL_CALLS_MAX; i++)
		while (raw_message(&a, WIRE_APP_CALL, i, "k", 1) == -EAGAIN)
			assert_int_equal(raw_answer(&a, &head, body, 5), -ETIMEDOUT);
	assert_soon(app_read(&app.nr_kept) == WIRE_CONTROL_CALLS_MAX);
	/* One call is answered, so there is room for another. */
	assert_int_equal(weir_reply(app.kept[0], "ok", 2), 0);
	app.kept[0] = NULL;
	expect_message(&a, WIRE_APP_REPLY, 0, "ok");
	assert_int_equal(raw_message(&a, WIRE_APP_CALL, 5000, "k", 1), 0);
	assert_soon(app_read(&app.nr_kept) == WIRE_CONTROL_CALLS_MAX + 1);
	raw_message(&a, WIRE_APP_CALL, 5001, "k", 1);
	assert_true(raw_is_cut_off(&a, SOON_MS));
	assert_soon(app_read(&app.left) == 1);
	assert_others_do_not_notice();
}

static void *reply_all(void *arg)
{
	unsigned int i;

	(void)arg;
	for (i = 0; i < 500; i++) {
		weir_reply(app.kept[i], "from a thread", 13);
		app.kept[i] = NULL;
	}
	return NULL;
}

static void any_thread_may_answer(void **state)
{
	char body[WIRE_CONTROL_BODY_MAX];
	struct wire_control_head head;
	pthread_t thread;
	unsigned int i;

	(void)state;
	for (i = 0; i < 500; i++)
		while (raw_message(&a, WIRE_APP_CALL, i, "k", 1) == -EAGAIN)
			assert_int_equal(raw_answer(&a, &head, body, 5), -ETIMEDOUT);
	assert_soon(app_read(&app.nr_kept) == 500);
	pthread_create(&thread, NULL, reply_all, NULL);
	for (i = 0; i < 500; i++)
		expect_message(&a, WIRE_APP_REPLY, i, "from a thread");
	pthread_join(thread, NULL);
}

static void a_call_may_be_answered_after_its_client_has_gone(void **state)
{
	(void)state;
	assert_int_equal(raw_message(&a, WIRE_APP_CALL, 1, "k", 1), 0);
	assert_soon(app_read(&app.nr_kept) == 1);
	raw_close(&a);
	assert_soon(app_read(&app.left) == 1);
	assert_int_equal(weir_reply(app.kept[0], "too late", 8), -ENOTCONN);
	app.kept[0] = NULL;
}

static bool again_ends;

static void again(void *arg)
{
	if (!__atomic_load_n(&again_ends, __ATOMIC_ACQUIRE))
		assert_int_equal(weir_donor_after(f.donor, 0, again, arg), 0);
}

static void a_timer_that_is_always_due_leaves_room(void **state)
{
	(void)state;
	again_ends = false;
	assert_int_equal(weir_donor_after(f.donor, 0, again, NULL), 0);
	assert_int_equal(raw_message(&a, WIRE_APP_CALL, 1, "e", 1), 0);
	expect_message(&a, WIRE_APP_REPLY, 1, "e");
	__atomic_store_n(&again_ends, true, __ATOMIC_RELEASE);
}

static void signals_are_left_to_the_program(void **state)
{
	sigset_t usr1, before, pending;

	(void)state;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, &before);
	kill(getpid(), SIGUSR1);
	sigpending(&pending);
	assert_true(sigismember(&pending, SIGUSR1));
	assert_int_equal(sigtimedwait(&usr1, NULL, &(struct timespec){ 0 }), SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void the_donor_ends_while_clients_are_connected(void **state)
{
	struct donor_fixture g;
	struct raw_client c;

	(void)state;
	donor_fixture_start(&g, NULL);
	assert_int_equal(raw_open(&c, g.info.address, &key_a), 0);
	assert_int_equal(raw_create(&c, NULL, MIB, 0, &(struct wire_control_region){ 0 }), 0);
	donor_fixture_stop(&g);
	assert_true(raw_is_cut_off(&c, SOON_MS));
	raw_close(&c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_message_arrives_as_it_was_sent),
		TEST(calls_are_answered_now_or_later),
		TEST(an_answer_that_is_too_long_comes_empty),
		TEST(thousands_of_calls_keep_the_credits_going),
		TEST(who_reads_too_slowly_is_not_sent_more),
		TEST(malformed_messages_end_the_client),
		TEST(longer_than_a_buffer_ends_the_client),
		TEST(a_write_with_immediate_is_no_message),
		TEST(who_sends_without_credits_is_cut_off),
		TEST(a_name_that_is_none_is_answered),
		TEST(more_calls_open_than_allowed_end_the_client),
		TEST(any_thread_may_answer),
		TEST(a_call_may_be_answered_after_its_client_has_gone),
		TEST(a_timer_that_is_always_due_leaves_room),
		TEST(signals_are_left_to_the_program),
		TEST(the_donor_ends_while_clients_are_connected),
	};

	return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
