/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: deadlines and cancel. */
#include "tests/support/engine_bench.h"

static struct weir_req late_at(struct weir_req req, uint64_t deadline_ns)
{
	req.deadline_ns = deadline_ns;
	return req;
}

static void expire(struct engine_bench *b, uint64_t now_ns)
{
	weir_engine_expired(&b->engine, now_ns);
	bench_pull(b);
}

static void the_first_deadline_is_told(void **state)
{
	static const uint64_t deadlines[] = { 300, 100, 200, 100 };
	struct engine_bench *b = bench_new(64 * KIB, 1);
	struct weir_req req[4];
	int i;

	(void)state;
	assert_int_equal(weir_engine_deadline_ns(&b->engine), WEIR_NEVER);
	for (i = 0; i < 4; i++) {
		req[i] = late_at(bench_req(WEIR_OP_READ, 0, 8), deadlines[i]);
		bench_submit(b, &req[i]);
	}
	assert_int_equal(weir_engine_deadline_ns(&b->engine), 100);
	bench_complete(b, 1, 0);
	assert_int_equal(weir_engine_deadline_ns(&b->engine), 100);
	bench_complete(b, 3, 0);
	assert_int_equal(weir_engine_deadline_ns(&b->engine), 200);
	bench_complete(b, 2, 0);
	assert_int_equal(weir_engine_deadline_ns(&b->engine), 300);
	bench_complete(b, 0, 0);
	bench_free(b);
}

static void too_early_does_nothing(void **state)
{
	struct weir_req req = late_at(bench_req(WEIR_OP_READ, 0, 8), 100);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &req);
	expire(b, 99);
	assert_int_equal(b->nr_failed, 0);
	assert_int_equal(b->nr_done, 0);
	bench_complete(b, 0, 0);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

static void passed_deadlines_are_refused(void **state)
{
	struct weir_req req = late_at(bench_req(WEIR_OP_READ, 0, 8), 100);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	assert_int_equal(weir_engine_submit(&b->engine, &req, 100), -ETIMEDOUT);
	bench_free(b);
}

static void unposted_ends_at_once(void **state)
{
	struct weir_req first = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req held = late_at(bench_req(WEIR_OP_WRITE, 4, 8), 100);
	struct weir_req behind = bench_req(WEIR_OP_WRITE, 8, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &first);
	bench_submit(b, &held);
	bench_submit(b, &behind);
	assert_int_equal(b->nr_posted, 1);
	expire(b, 100);
	assert_int_equal(held.status, -ETIMEDOUT);
	assert_int_equal(b->nr_failed, 0);
	assert_int_equal(b->nr_posted, 2);
	assert_ptr_equal(b->posted[1]->req, &behind);
	bench_finish(b, 0);
	bench_free(b);
}

/* A host looks at the clock some time after the deadline. */
static void a_late_expiry_ends_all_that_are_late(void **state)
{
	struct weir_req first = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req held = late_at(bench_req(WEIR_OP_WRITE, 4, 8), 100);
	struct weir_req later = late_at(bench_req(WEIR_OP_WRITE, 4, 8), 150);
	struct weir_req in_time = late_at(bench_req(WEIR_OP_WRITE, 4, 8), 171);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &first);
	bench_submit(b, &held);
	bench_submit(b, &later);
	bench_submit(b, &in_time);
	expire(b, 170);
	assert_int_equal(held.status, -ETIMEDOUT);
	assert_int_equal(later.status, -ETIMEDOUT);
	assert_int_equal(b->nr_done, 2);
	bench_finish(b, 0);
	assert_int_equal(in_time.status, 0);
	bench_free(b);
}

static void posted_ends_when_the_flush_is_over(void **state)
{
	struct weir_req late = late_at(bench_req(WEIR_OP_WRITE, 0, 8), 100);
	struct weir_req read = bench_req(WEIR_OP_READ, 8, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	read.retries = 1;
	bench_submit(b, &late);
	bench_submit(b, &read);
	assert_int_equal(weir_engine_channel_up(&b->engine, 1, 64), 0);
	expire(b, 100);
	assert_int_equal(b->nr_failed, 1);
	assert_int_equal(b->failed[0], 0);
	assert_int_equal(b->nr_done, 0);
	assert_int_equal(weir_engine_deadline_ns(&b->engine), WEIR_NEVER);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_done, 0);
	bench_give_up(b, 0);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(late.status, -ETIMEDOUT);
	bench_complete(b, 1, -ECONNRESET);
	assert_int_equal(b->batches[2].channel, 1);
	bench_complete(b, 2, 0);
	assert_int_equal(read.status, 0);
	bench_free(b);
}

static void only_its_own_channels_fail(void **state)
{
	struct weir_req other = bench_req(WEIR_OP_READ, 0, 8);
	struct weir_req late = late_at(bench_req(WEIR_OP_READ, 0, 8), 100);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	bench_submit(b, &other);
	bench_submit(b, &late);
	expire(b, 100);
	assert_int_equal(b->nr_failed, 1);
	assert_int_equal(b->failed[0], 1);
	bench_complete(b, 1, -ECONNRESET);
	bench_complete(b, 0, 0);
	assert_int_equal(other.status, 0);
	assert_int_equal(late.status, -ETIMEDOUT);
	bench_free(b);
}

static void a_late_success_is_late(void **state)
{
	struct weir_req late = late_at(bench_req(WEIR_OP_WRITE, 0, 8), 100);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &late);
	expire(b, 100);
	bench_complete(b, 0, 0);
	assert_int_equal(late.status, -ETIMEDOUT);
	bench_free(b);
}

static void the_rest_of_a_late_request_is_not_posted(void **state)
{
	struct weir_req late = late_at(bench_req(WEIR_OP_WRITE, 0, 40 * KIB), 100);
	struct engine_bench *b = bench_new(4 * KIB, 2);

	(void)state;
	bench_submit(b, &late);
	expire(b, 100);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_posted, 1);
	assert_int_equal(late.status, -ETIMEDOUT);
	bench_free(b);
}

static void a_barrier_times_out_too(void **state)
{
	struct weir_req before = bench_req(WEIR_OP_READ, 0, 8);
	struct weir_req barrier = late_at(bench_req(WEIR_OP_BARRIER, 0, 0), 100);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &before);
	bench_submit(b, &barrier);
	expire(b, 100);
	assert_int_equal(barrier.status, -ETIMEDOUT);
	assert_int_equal(b->nr_failed, 0);
	bench_complete(b, 0, 0);
	bench_free(b);
}

static void cancel_takes_back_an_unposted_request(void **state)
{
	struct weir_req first = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req second = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req third = bench_req(WEIR_OP_READ, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &first);
	bench_submit(b, &second);
	bench_submit(b, &third);
	assert_int_equal(weir_engine_cancel(&b->engine, &second), 0);
	bench_pull(b);
	assert_int_equal(second.status, -ECANCELED);
	assert_int_equal(b->nr_posted, 1);
	bench_finish(b, 0);
	assert_int_equal(b->nr_posted, 2);
	assert_int_equal(third.status, 0);
	bench_free(b);
}

static void cancel_leaves_a_posted_request(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 40 * KIB);
	struct engine_bench *b = bench_new(4 * KIB, 1);

	(void)state;
	bench_submit(b, &req);
	assert_int_equal(weir_engine_cancel(&b->engine, &req), -EINPROGRESS);
	bench_finish(b, 0);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

static void cancel_leaves_a_completed_request(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &req);
	bench_complete_only(b, 0, 0);
	assert_int_equal(weir_engine_cancel(&b->engine, &req), -EINPROGRESS);
	bench_pull(b);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("the first deadline of all is told", the_first_deadline_is_told),
		SAYS("too early does nothing", too_early_does_nothing),
		SAYS("a deadline that has passed is refused", passed_deadlines_are_refused),
		SAYS("a late unposted request ends at once, and unblocks others",
		     unposted_ends_at_once),
		SAYS("an expiry after the deadline ends all that are late",
		     a_late_expiry_ends_all_that_are_late),
		SAYS("a late posted request ends after the flush; others are repeated",
		     posted_ends_when_the_flush_is_over),
		SAYS("only the late request's channels fail", only_its_own_channels_fail),
		SAYS("a success that comes late is late", a_late_success_is_late),
		SAYS("the rest of a late request is not posted",
		     the_rest_of_a_late_request_is_not_posted),
		SAYS("a barrier has a deadline too", a_barrier_times_out_too),
		SAYS("cancel takes back an unposted request",
		     cancel_takes_back_an_unposted_request),
		SAYS("cancel leaves a posted request", cancel_leaves_a_posted_request),
		SAYS("cancel leaves a completed request", cancel_leaves_a_completed_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
