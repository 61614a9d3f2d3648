/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: requests of several classes in one session. */
#include "core/sched/window_classes.h"
#include "tests/support/engine_bench.h"

#define PAGE (4 * KIB)
#define SEGMENT WEIR_SCHED_SEGMENT_BYTES
#define MANY 120

/* As a host names classes. */
enum { OF_SESSION, URGENT, NORMAL, BULK };

static const struct weir_engine_config hybrid = { .fragment_bytes = SEGMENT,
						  .chain_max = WEIR_BATCH_MAX,
						  .sge_max = WEIR_WR_SGE_MAX,
						  .merge = true };

static struct weir_req request(uint8_t class, unsigned int place, uint32_t length)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, (uint64_t)place << 20, length);

	req.class = class;
	return req;
}

static struct engine_bench *bench_with_classes(struct weir_window_classes *classes, uint64_t window,
					       enum weir_window_class class)
{
	struct engine_bench *b = bench_new_with(&hybrid, window, 1);

	weir_window_classes_init(classes);
	weir_engine_join_classes(&b->engine, classes, class, 1);
	return b;
}

static void bench_with_classes_free(struct engine_bench *b)
{
	weir_window_classes_part(&b->window);
	bench_free(b);
}

static void an_urgent_request_passes_bulk_of_its_session(void **state)
{
	struct weir_window_classes classes;
	struct engine_bench *b = bench_with_classes(&classes, 8u << 20, WEIR_WINDOW_NORMAL);
	static struct weir_req bulk[16];
	struct weir_req urgent = request(URGENT, 100, PAGE);
	unsigned int i;

	(void)state;
	for (i = 0; i < 16; i++) {
		bulk[i] = request(BULK, i, SEGMENT);
		bench_submit(b, &bulk[i]);
	}
	assert_int_equal(b->nr_posted, WEIR_WINDOW_LOW_BYTES / SEGMENT);
	bench_submit(b, &urgent);
	assert_ptr_equal(b->posted[b->nr_posted - 1]->req, &urgent);
	bench_finish(b, 0);
	assert_int_equal(b->nr_done, 17);
	bench_with_classes_free(b);
}

/* The window has room for a request: the classes of the waiting requests decide. */
static void waiting_requests_go_by_class(void **state)
{
	struct weir_window_classes classes;
	struct engine_bench *b = bench_with_classes(&classes, SEGMENT, WEIR_WINDOW_NORMAL);
	static const uint8_t order[] = { BULK, NORMAL, BULK, URGENT, OF_SESSION, URGENT };
	static const unsigned int expected[] = { 0, 3, 5, 1, 4, 2 };
	struct weir_req req[6];
	unsigned int i;

	(void)state;
	for (i = 0; i < 6; i++) {
		req[i] = request(order[i], i, SEGMENT);
		bench_submit(b, &req[i]);
	}
	bench_finish(b, 0);
	for (i = 0; i < 6; i++)
		assert_ptr_equal(b->done[i], &req[expected[i]]);
	bench_with_classes_free(b);
}

/* The class of the session: requests without one go by it. */
static void a_request_without_a_class_has_the_class_of_its_session(void **state)
{
	struct weir_window_classes classes;
	struct engine_bench *b = bench_with_classes(&classes, SEGMENT, WEIR_WINDOW_BULK);
	struct weir_req first = request(OF_SESSION, 0, SEGMENT), plain = first, normal = first;

	(void)state;
	plain = request(OF_SESSION, 1, SEGMENT);
	normal = request(NORMAL, 2, SEGMENT);
	bench_submit(b, &first);
	bench_submit(b, &plain);
	bench_submit(b, &normal);
	bench_finish(b, 0);
	assert_ptr_equal(b->done[1], &normal);
	assert_ptr_equal(b->done[2], &plain);
	bench_with_classes_free(b);
}

static void neighbours_of_two_classes_are_not_merged(void **state)
{
	struct weir_window_classes classes;
	struct engine_bench *b = bench_with_classes(&classes, 8u << 20, WEIR_WINDOW_NORMAL);
	struct weir_req req[4];
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		req[i] = request(i < 2 ? URGENT : BULK, 0, PAGE);
		req[i].remote += i * PAGE;
		assert_int_equal(weir_engine_submit(&b->engine, &req[i], 0), 0);
	}
	bench_pull(b);
	assert_int_equal(b->nr_posted, 2);
	assert_int_equal(b->posted[0]->nr_reqs, 2);
	assert_int_equal(b->posted[1]->nr_reqs, 2);
	bench_finish(b, 0);
	bench_with_classes_free(b);
}

static void overlapping_requests_keep_their_order(void **state)
{
	struct weir_window_classes classes;
	struct engine_bench *b = bench_with_classes(&classes, 8u << 20, WEIR_WINDOW_NORMAL);
	struct weir_req bulk = request(BULK, 0, PAGE), urgent = request(URGENT, 0, PAGE);

	(void)state;
	bench_submit(b, &bulk);
	bench_submit(b, &urgent);
	assert_int_equal(b->nr_posted, 1);
	bench_finish(b, 0);
	assert_ptr_equal(b->done[0], &bulk);
	assert_ptr_equal(b->done[1], &urgent);
	bench_with_classes_free(b);
}

/* Urgent requests that fill the channel for ever leave a place in it to bulk. */
static void urgent_requests_leave_a_place_to_bulk(void **state)
{
	struct weir_window_classes classes;
	struct engine_bench *b = bench_with_classes(&classes, 8u << 20, WEIR_WINDOW_NORMAL);
	static struct weir_req urgent[MANY];
	struct weir_req bulk = request(BULK, 500, PAGE);
	unsigned int i;

	(void)state;
	for (i = 0; i < MANY; i++) {
		urgent[i] = request(URGENT, i, PAGE);
		assert_int_equal(weir_engine_submit(&b->engine, &urgent[i], 0), 0);
	}
	assert_int_equal(weir_engine_submit(&b->engine, &bulk, 0), 0);
	bench_pull(b);
	assert_int_equal(b->nr_posted, 64);
	assert_ptr_equal(b->posted[63]->req, &bulk);
	bench_finish(b, 0);
	assert_int_equal(b->nr_done, MANY + 1);
	bench_with_classes_free(b);
}

/* Without classes on the window, classes order the session's own requests. */
static void without_classes_on_the_window_the_session_has_them(void **state)
{
	struct engine_bench *b = bench_new_with(&hybrid, SEGMENT, 1);
	struct weir_req first = request(OF_SESSION, 0, SEGMENT);
	struct weir_req bulk = request(BULK, 1, SEGMENT), urgent = request(URGENT, 2, SEGMENT);

	(void)state;
	bench_submit(b, &first);
	assert_int_equal(weir_engine_submit(&b->engine, &bulk, 0), 0);
	assert_int_equal(weir_engine_submit(&b->engine, &urgent, 0), 0);
	bench_finish(b, 0);
	assert_ptr_equal(b->done[1], &urgent);
	assert_ptr_equal(b->done[2], &bulk);
	bench_free(b);
}

/* A session joins with requests in line and in flight. */
static void a_session_may_join_late(void **state)
{
	struct engine_bench *b = bench_new_with(&hybrid, 2 * SEGMENT, 1);
	struct weir_window_classes classes;
	struct weir_req req[4], urgent = request(URGENT, 9, PAGE);
	unsigned int i;

	(void)state;
	weir_window_classes_init(&classes);
	for (i = 0; i < 4; i++) {
		req[i] = request(OF_SESSION, i, SEGMENT);
		bench_submit(b, &req[i]);
	}
	assert_int_equal(b->nr_posted, 2);
	weir_engine_join_classes(&b->engine, &classes, WEIR_WINDOW_NORMAL, 1);
	bench_submit(b, &urgent);
	bench_finish(b, 0);
	assert_ptr_equal(b->done[2], &urgent);
	assert_int_equal(b->nr_done, 5);
	assert_int_equal(classes.sched.low_bytes, 0);
	bench_with_classes_free(b);
}

/* A silent channel blocks other classes of its own session only. */
static void own_waiters_are_no_reason_to_break_a_channel(void **state)
{
	struct weir_engine_config config = hybrid;
	struct weir_window_classes classes;
	struct engine_bench *b;
	struct weir_req req[3];
	unsigned int i;

	(void)state;
	config.stall_timeout_ns = 1000;
	b = bench_new_with(&config, SEGMENT, 1);
	weir_window_classes_init(&classes);
	weir_engine_join_classes(&b->engine, &classes, WEIR_WINDOW_NORMAL, 1);
	for (i = 0; i < 3; i++) {
		req[i] = request((uint8_t)(i + 1), i, SEGMENT);
		bench_submit(b, &req[i]);
	}
	for (i = 1; i < 100; i++)
		assert_false(weir_engine_expired(&b->engine, i * 1000));
	assert_int_equal(b->nr_failed, 0);
	bench_finish(b, 0);
	weir_engine_expired(&b->engine, WEIR_NEVER - 1);
	bench_with_classes_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("an urgent request passes bulk of its session",
		     an_urgent_request_passes_bulk_of_its_session),
		SAYS("waiting requests go by class", waiting_requests_go_by_class),
		SAYS("a request without a class has the class of its session",
		     a_request_without_a_class_has_the_class_of_its_session),
		SAYS("neighbours of two classes are not merged",
		     neighbours_of_two_classes_are_not_merged),
		SAYS("overlapping requests keep their order",
		     overlapping_requests_keep_their_order),
		SAYS("urgent requests leave a place to bulk",
		     urgent_requests_leave_a_place_to_bulk),
		SAYS("without classes on the window, the session has them",
		     without_classes_on_the_window_the_session_has_them),
		SAYS("a session may join late", a_session_may_join_late),
		SAYS("own waiters are no reason to break a channel",
		     own_waiters_are_no_reason_to_break_a_channel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
