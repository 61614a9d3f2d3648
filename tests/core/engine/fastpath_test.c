/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The fast path of a single request, and the events that leave it. */
#include "core/engine/fastpath.h"
#include "tests/support/engine_bench.h"

/* Post @req on the fast path. */
static void go_alone(struct engine_bench *b, struct weir_req *req)
{
	struct weir_wr *wr = weir_fastpath_post(&b->engine, req);
	struct weir_action a = { .type = WEIR_ACTION_POST, .wr = wr, .count = 1 };

	assert_non_null(wr);
	a.channel = wr->channel;
	bench_log_post(b, &a);
}

static void posts_it_at_once_and_whole(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 2);
	struct weir_req req = bench_req(WEIR_OP_READ, 0x100, 4 * KIB);
	struct weir_action action;
	const struct weir_wr *wr;

	(void)state;
	go_alone(b, &req);
	wr = b->posted[0];
	assert_ptr_equal(wr->req, &req);
	assert_int_equal(wr->offset, 0);
	assert_int_equal(wr->length, 4 * KIB);
	assert_int_equal(wr->nr_sge, 1);
	assert_memory_equal(&wr->sge[0], &req.sge[0], sizeof(req.sge[0]));
	assert_int_equal(b->window.bytes, 4 * KIB);
	assert_false(weir_engine_next(&b->engine, &action));

	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_done, 1);
	assert_ptr_equal(b->done[0], &req);
	assert_int_equal(req.status, 0);
	assert_int_equal(weir_engine_cancel(&b->engine, &req), -EINPROGRESS);
	bench_free(b);
}

static void may_end_before_anything_else_happens(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 2);
	struct weir_req first = bench_req(WEIR_OP_WRITE, 0x100, 4 * KIB);
	struct weir_req second = bench_req(WEIR_OP_WRITE, 0x100, 4 * KIB);
	struct weir_action action;
	struct weir_wr *wr;

	(void)state;
	first.status = -EIO;
	wr = weir_fastpath_post(&b->engine, &first);
	assert_non_null(wr);
	assert_ptr_equal(weir_fastpath_complete(&b->engine, wr), &first);
	assert_int_equal(first.status, 0);
	assert_int_equal(b->window.bytes + b->window.wrs, 0);
	assert_false(weir_engine_next(&b->engine, &action));
	assert_true(weir_engine_is_idle(&b->engine));
	assert_int_equal(weir_engine_cancel(&b->engine, &first), -EINPROGRESS);

	go_alone(b, &second); /* the first request holds nothing any more */
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_done, 1);
	bench_free(b);
}

static void refuses_requests_with_options(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 1);
	struct weir_req cas = bench_req(WEIR_OP_CAS, 0, 8), send = bench_req(WEIR_OP_SEND, 0, 8);
	struct weir_req barrier = { .op = WEIR_OP_BARRIER, .deadline_ns = WEIR_NEVER };
	struct weir_req longer = bench_req(WEIR_OP_WRITE, 0, 4 * KIB + 1);
	struct weir_req scattered = bench_req(WEIR_OP_WRITE, 0, 8);

	(void)state;
	scattered.nr_sge = 2;
	assert_null(weir_fastpath_post(&b->engine, &cas));
	assert_null(weir_fastpath_post(&b->engine, &send));
	assert_null(weir_fastpath_post(&b->engine, &barrier));
	assert_null(weir_fastpath_post(&b->engine, &longer));
	assert_null(weir_fastpath_post(&b->engine, &scattered));
	bench_free(b);
}

/* The engine chooses the path of a write while building batches. A read has only one path. */
static void refuses_a_write_that_may_be_unloaded(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 1);
	struct weir_req write = bench_req(WEIR_OP_WRITE, 0x100, 8);
	struct weir_req read = bench_req(WEIR_OP_READ, 0x100, 8);
	struct weir_path_selector selector;

	(void)state;
	memset(&selector, 0, sizeof(selector));
	b->engine.selector = &selector;
	assert_null(weir_fastpath_post(&b->engine, &write));
	go_alone(b, &read);
	bench_complete(b, 0, 0);
	b->engine.selector = NULL;
	go_alone(b, &write);
	bench_complete(b, 1, 0);
	assert_int_equal(b->nr_done, 2);
	bench_free(b);
}

static void refuses_company(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 1);
	struct weir_req first = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req second = bench_req(WEIR_OP_WRITE, 0x100, 8);

	(void)state;
	bench_submit(b, &first);
	assert_null(weir_fastpath_post(&b->engine, &second));
	bench_complete(b, 0, 0);
	go_alone(b, &first);
	assert_null(weir_fastpath_post(&b->engine, &second));
	bench_complete(b, 1, 0);
	bench_free(b);
}

static void refuses_when_there_is_nowhere_to_go(void **state)
{
	struct engine_bench *b = bench_new(4 * KIB, 1);
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_window_waiter other;

	(void)state;
	weir_window_waiter_init(&other);
	assert_int_equal(weir_window_take(&b->window, &other, 4 * KIB), 0);
	assert_null(weir_fastpath_post(&b->engine, &req)); /* the window is full */
	assert_int_equal(weir_window_take(&b->window, &other, 8), -EAGAIN);
	weir_window_give(&b->window, 4 * KIB);
	/* there is room, but another waiter is first */
	assert_null(weir_fastpath_post(&b->engine, &req));
	weir_window_leave(&other);
	weir_engine_channel_broken(&b->engine, 0);
	assert_null(weir_fastpath_post(&b->engine, &req)); /* no channel */
	assert_int_equal(b->window.wrs, 0);
	bench_free(b);
}

static void holds_an_overlapping_request(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 2);
	struct weir_req first = bench_req(WEIR_OP_WRITE, 0, 16);
	struct weir_req over = bench_req(WEIR_OP_READ, 8, 16),
			beside = bench_req(WEIR_OP_READ, 16, 8);

	(void)state;
	go_alone(b, &first);
	bench_submit(b, &over);
	assert_int_equal(b->nr_posted, 1);
	bench_submit(b, &beside);
	assert_int_equal(b->nr_posted, 2);
	assert_ptr_equal(b->posted[1]->req, &beside);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_posted, 3);
	assert_ptr_equal(b->posted[2]->req, &over);
	bench_complete(b, 1, 0);
	bench_complete(b, 2, 0);
	assert_int_equal(b->nr_done, 3);
	bench_free(b);
}

static void holds_a_barrier(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 1);
	struct weir_req barrier = { .op = WEIR_OP_BARRIER, .deadline_ns = WEIR_NEVER };
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 16);
	int i;

	(void)state;
	for (i = 0; i < 2; i++) { /* the second round starts behind a barrier */
		b->nr_posted = b->nr_done = 0;
		go_alone(b, &req);
		bench_submit(b, &barrier);
		assert_int_equal(b->nr_done, 0);
		bench_complete(b, 0, 0);
		assert_int_equal(b->nr_done, 2);
		assert_ptr_equal(b->done[1], &barrier);
	}
	bench_free(b);
}

static void is_posted_and_so_not_canceled(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 1);
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 16);

	(void)state;
	go_alone(b, &req);
	assert_int_equal(weir_engine_cancel(&b->engine, &req), -EINPROGRESS);
	bench_complete(b, 0, 0);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

static void has_a_deadline(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 1);
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 16);

	(void)state;
	go_alone(b, &req);
	req.deadline_ns = 100;
	assert_int_equal(weir_engine_deadline_ns(&b->engine), 100);
	weir_engine_expired(&b->engine, 99);
	bench_pull(b);
	assert_int_equal(b->nr_failed, 0);
	weir_engine_expired(&b->engine, 100);
	bench_pull(b);
	assert_int_equal(b->nr_failed, 1); /* only a flush releases the request's memory */
	assert_int_equal(b->nr_done, 0);
	weir_engine_channel_down(&b->engine, 0);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req.status, -ETIMEDOUT);
	bench_free(b);
}

static void is_repeated_as_any_other(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 2);
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 16);

	(void)state;
	req.retries = 1;
	go_alone(b, &req);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_failed, 1);
	assert_int_equal(b->nr_posted, 2);
	assert_int_not_equal(b->posted[1]->channel, b->failed[0]);
	bench_complete(b, 1, 0);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

static void goes_another_way_when_it_could_not_be_posted(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 2);
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 16);

	(void)state;
	go_alone(b, &req);
	bench_complete(b, 0, -ENOTCONN);
	assert_int_equal(b->nr_posted, 2);
	bench_complete(b, 1, 0);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("a single request is posted at once, whole", posts_it_at_once_and_whole),
		SAYS("it may end before anything else happens",
		     may_end_before_anything_else_happens),
		SAYS("a request with options does not take the fast path",
		     refuses_requests_with_options),
		SAYS("a write that may be unloaded goes the long way",
		     refuses_a_write_that_may_be_unloaded),
		SAYS("a request beside others does not take the fast path", refuses_company),
		SAYS("no room, a line or no channel: the long way",
		     refuses_when_there_is_nowhere_to_go),
		SAYS("an overlapping request waits for the fast-path request",
		     holds_an_overlapping_request),
		SAYS("a barrier waits for it", holds_a_barrier),
		SAYS("it is posted, and so not canceled", is_posted_and_so_not_canceled),
		SAYS("it has a deadline, which may be told later", has_a_deadline),
		SAYS("it is repeated as any other", is_repeated_as_any_other),
		SAYS("a request that could not be posted is submitted normally",
		     goes_another_way_when_it_could_not_be_posted),
	};

	return cmocka_run_group_tests_name("lone", tests, NULL, NULL);
}
