/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: writes and atomics lost with a channel, which may still arrive. */
#include "tests/support/engine_bench.h"

static void a_conflicting_request_waits(void **state)
{
	struct weir_req lost = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req same = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req other = bench_req(WEIR_OP_WRITE, 64, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);
	uint16_t channel;

	(void)state;
	bench_submit(b, &lost);
	channel = b->posted[0]->channel;
	bench_complete(b, 0, -ECONNRESET);
	bench_submit(b, &same);
	bench_submit(b, &other);
	assert_int_equal(b->nr_done, 0);
	assert_int_equal(b->nr_posted, 2);
	assert_ptr_equal(b->posted[1]->req, &other);

	assert_int_equal(weir_engine_channel_up(&b->engine, channel, 64), 0);
	bench_pull(b);
	assert_int_equal(lost.status, -ECONNRESET);
	assert_int_equal(b->nr_posted, 3);
	assert_ptr_equal(b->posted[2]->req, &same);
	bench_finish(b, 1);
	bench_free(b);
}

static void an_exclusive_write_is_repeated_when_the_channel_is_back(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);
	uint16_t channel;

	(void)state;
	req.exclusive = true;
	req.retries = 1;
	bench_submit(b, &req);
	channel = b->posted[0]->channel;
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_posted, 1);
	assert_int_equal(weir_engine_channel_up(&b->engine, channel, 64), 0);
	bench_pull(b);
	assert_int_equal(b->nr_posted, 2);
	bench_complete(b, 1, 0);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

static void nothing_is_repeated_when_the_channel_is_gone(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	req.exclusive = true;
	req.retries = 1;
	bench_submit(b, &req);
	bench_complete(b, 0, -ECONNRESET);
	bench_give_up(b, b->posted[0]->channel);
	assert_int_equal(b->nr_posted, 1);
	assert_int_equal(req.status, -ECONNRESET);
	bench_free(b);
}

static void an_atomic_is_never_repeated(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_FADD, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	req.exclusive = true;
	req.retries = 1;
	bench_submit(b, &req);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(weir_engine_channel_up(&b->engine, 0, 64), 0);
	bench_pull(b);
	assert_int_equal(b->nr_posted, 1);
	assert_int_equal(req.status, -ECONNRESET);
	bench_free(b);
}

static void all_its_channels_must_be_heard_of(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8 * KIB);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	bench_submit(b, &req);
	assert_int_equal(b->nr_batches, 2);
	bench_complete(b, 0, -ECONNRESET);
	bench_complete(b, 1, -ECONNRESET);
	assert_int_equal(weir_engine_channel_up(&b->engine, 1, 64), 0);
	bench_pull(b);
	assert_int_equal(b->nr_done, 0);
	assert_int_equal(weir_engine_channel_up(&b->engine, 0, 64), 0);
	bench_pull(b);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req.status, -ECONNRESET);
	bench_free(b);
}

static void a_deadline_does_not_set_it_free(void **state)
{
	struct weir_req lost = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req same = bench_req(WEIR_OP_READ, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	lost.deadline_ns = 100;
	lost.exclusive = true;
	lost.retries = 1;
	bench_submit(b, &lost);
	bench_complete(b, 0, -ECONNRESET);
	bench_submit(b, &same);
	weir_engine_expired(&b->engine, 100);
	bench_pull(b);
	assert_int_equal(b->nr_done, 0);
	assert_int_equal(b->nr_posted, 1);
	assert_int_equal(weir_engine_channel_up(&b->engine, b->posted[0]->channel, 64), 0);
	bench_pull(b);
	assert_int_equal(lost.status, -ETIMEDOUT);
	assert_int_equal(b->nr_posted, 2);
	bench_finish(b, 1);
	assert_int_equal(same.status, 0);
	bench_free(b);
}

static void an_unposted_request_waits_for_a_broken_channel(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	weir_engine_channel_broken(&b->engine, 0);
	bench_submit(b, &req);
	assert_int_equal(b->nr_posted, 0);
	assert_int_equal(weir_engine_channel_up(&b->engine, 0, 64), 0);
	bench_pull(b);
	assert_int_equal(b->nr_failed, 0);
	bench_complete(b, 0, 0);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("a request that conflicts with a lost write waits for the channel's report",
		     a_conflicting_request_waits),
		SAYS("a lost exclusive write is repeated when its channel is back",
		     an_exclusive_write_is_repeated_when_the_channel_is_back),
		SAYS("nothing is repeated when the channel is gone for good",
		     nothing_is_repeated_when_the_channel_is_gone),
		SAYS("a lost atomic is never repeated", an_atomic_is_never_repeated),
		SAYS("a write that was lost on two channels waits for both",
		     all_its_channels_must_be_heard_of),
		SAYS("a deadline does not unblock requests behind a lost write",
		     a_deadline_does_not_set_it_free),
		SAYS("an unposted request waits for a broken channel",
		     an_unposted_request_waits_for_a_broken_channel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
