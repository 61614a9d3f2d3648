/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: serve requests; suites: serve */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "apps/serve/files/requests.h"

/* Calls are never looked into. */
#define CALL(n) ((struct weir_call *)(uintptr_t)(n))

static struct {
	unsigned int nr;
	struct weir_call *last;
	size_t length;
} replies;

int __wrap_weir_reply(struct weir_call *call, const void *data, size_t length);

int __wrap_weir_reply(struct weir_call *call, const void *data, size_t length)
{
	(void)data;
	replies.nr++;
	replies.last = call;
	replies.length = length;
	return 0;
}

static struct staging staging;
static struct staging_conn conn;
static struct file_requests requests;
static struct file_request_list list;

static int setup(void **state)
{
	(void)state;
	memset(&replies, 0, sizeof(replies));
	memset(&requests, 0, sizeof(requests));
	staging_init(&staging);
	conn = (struct staging_conn){ .staging = &staging, .refs = 1 };
	file_requests_init(&requests);
	TAILQ_INIT(&list);
	return 0;
}

/* No test leaves a request. */
static int teardown(void **state)
{
	(void)state;
	file_requests_close(&requests, &list);
	assert_int_equal(conn.refs, 1);
	file_requests_fini(&requests);
	staging_fini(&staging);
	return 0;
}

static void add(unsigned int call)
{
	assert_int_equal(file_requests_add(&requests, &conn, CALL(call), &call, sizeof(call)), 0);
}

static void requests_are_taken_together_and_in_order(void **state)
{
	struct file_request *request;
	unsigned int message, next = 1;

	(void)state;
	add(1);
	add(2);
	add(3);
	assert_true(file_requests_await(&requests, &list, UINT64_MAX));
	while ((request = TAILQ_FIRST(&list))) {
		memcpy(&message, request->message, sizeof(message));
		assert_int_equal(message, next);
		TAILQ_REMOVE(&list, request, entry);
		file_request_end(request, &message, sizeof(message));
		assert_ptr_equal(replies.last, CALL(next));
		assert_int_equal(replies.length, sizeof(message));
		next++;
	}
	assert_int_equal(next, 4);
}

static void a_wait_without_requests_ends_at_its_time(void **state)
{
	(void)state;
	assert_true(file_requests_await(&requests, &list, 1));
	assert_true(TAILQ_EMPTY(&list));
}

static void a_stop_ends_the_wait_and_leaves_what_has_come(void **state)
{
	(void)state;
	add(1);
	file_requests_stop(&requests);
	assert_false(file_requests_await(&requests, &list, UINT64_MAX));
	assert_false(TAILQ_EMPTY(&list));
	assert_false(file_requests_await(&requests, &list, UINT64_MAX));
}

static void a_closed_queue_ends_what_it_has_and_what_comes(void **state)
{
	(void)state;
	add(1);
	assert_true(file_requests_await(&requests, &list, UINT64_MAX));
	add(2);
	file_requests_close(&requests, &list);
	assert_true(TAILQ_EMPTY(&list));
	assert_int_equal(replies.nr, 2);
	add(3);
	assert_int_equal(replies.nr, 3);
	assert_int_equal(replies.length, 0);
}

static void a_message_that_has_its_reply_gets_no_other(void **state)
{
	(void)state;
	add(0);
	file_requests_close(&requests, &list);
	assert_int_equal(replies.nr, 0);
}

static void a_message_without_a_whole_head_asks_for_nothing(void **state)
{
	struct {
		struct wire_fs_call call;
		struct wire_fs_head head;
	} message = { .head.op = FS_READ };

	(void)state;
	assert_int_equal(file_message_op(&message, sizeof(message)), FS_READ);
	assert_int_equal(file_message_op(&message, sizeof(message) - 1), 0);
	assert_int_equal(file_message_op(&message, 0), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(requests_are_taken_together_and_in_order),
		TEST(a_wait_without_requests_ends_at_its_time),
		TEST(a_stop_ends_the_wait_and_leaves_what_has_come),
		TEST(a_closed_queue_ends_what_it_has_and_what_comes),
		TEST(a_message_that_has_its_reply_gets_no_other),
		TEST(a_message_without_a_whole_head_asks_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
