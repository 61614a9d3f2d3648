/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: channels to which a thread posts without the host's lock. */
#include "core/engine/fastpath.h"
#include "tests/support/engine_bench.h"

static void a_busy_channel_is_passed_over(void **state)
{
	struct weir_req first = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req second = bench_req(WEIR_OP_WRITE, 64, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	weir_engine_channel_busy(&b->engine, 0, true);
	bench_submit(b, &first);
	assert_int_equal(b->nr_posted, 1);
	assert_int_equal(b->posted[0]->channel, 1);
	weir_engine_channel_busy(&b->engine, 0, false);
	bench_submit(b, &second);
	assert_int_equal(b->nr_posted, 2);
	assert_int_equal(b->posted[1]->channel, 0);
	bench_finish(b, 0);
	bench_free(b);
}

static void requests_wait_while_all_channels_are_busy(void **state)
{
	struct weir_req write = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req message = bench_req(WEIR_OP_SEND, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	weir_engine_channel_busy(&b->engine, 0, true);
	bench_submit(b, &message); /* messages have channel 0 alone */
	assert_int_equal(b->nr_posted, 0);
	weir_engine_channel_busy(&b->engine, 1, true);
	bench_submit(b, &write);
	assert_int_equal(b->nr_posted, 0);
	assert_int_equal(b->window.wrs, 0);
	weir_engine_channel_busy(&b->engine, 0, false);
	bench_pull(b);
	assert_int_equal(b->nr_posted, 2);
	bench_finish(b, 0);
	bench_free(b);
}

static void overlapping_requests_keep_their_order(void **state)
{
	struct weir_req first = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req second = bench_req(WEIR_OP_WRITE, 4, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	bench_submit(b, &first);
	weir_engine_channel_busy(&b->engine, b->posted[0]->channel, true);
	bench_submit(b, &second);
	assert_int_equal(b->nr_posted, 1);
	weir_engine_channel_busy(&b->engine, b->posted[0]->channel, false);
	bench_pull(b);
	assert_int_equal(b->nr_posted, 1);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_posted, 2);
	bench_finish(b, 1);
	bench_free(b);
}

static void a_lone_request_takes_no_busy_channel(void **state)
{
	struct weir_req first = bench_req(WEIR_OP_READ, 0, 8);
	struct weir_req second = bench_req(WEIR_OP_READ, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);
	struct weir_wr *wr;

	(void)state;
	weir_engine_channel_busy(&b->engine, 0, true);
	wr = weir_fastpath_post(&b->engine, &first);
	assert_non_null(wr);
	assert_int_equal(wr->channel, 1);
	assert_ptr_equal(weir_fastpath_complete(&b->engine, wr), &first);
	weir_engine_channel_busy(&b->engine, 1, true);
	assert_null(weir_fastpath_post(&b->engine, &second));
	bench_free(b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SAYS("a busy channel is passed over", a_busy_channel_is_passed_over),
		SAYS("requests wait while all channels are busy",
		     requests_wait_while_all_channels_are_busy),
		SAYS("overlapping requests keep their order",
		     overlapping_requests_keep_their_order),
		SAYS("a lone request takes no busy channel", a_lone_request_takes_no_busy_channel),
	};

	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
