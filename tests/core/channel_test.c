/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Channels that somebody is posting to, without the lock, while others submit. */
#include "core/lone.h"
#include "tests/core/bench.h"

static void is_passed_by(void **state)
{
	struct weir_req writes[2] = { bench_req(WEIR_OP_WRITE, 0, 8), bench_req(WEIR_OP_WRITE, 64, 8) };
	struct bench *b = bench_new(64 * KIB, 2);

	(void)state;
	weir_engine_channel_busy(&b->engine, 0, true);
	bench_submit(b, &writes[0]);
	assert_int_equal(b->nr_posted, 1);
	assert_int_equal(b->posted[0]->channel, 1);
	weir_engine_channel_busy(&b->engine, 0, false);
	bench_submit(b, &writes[1]);
	assert_int_equal(b->posted[1]->channel, 0);
	bench_finish(b, 0);
	bench_free(b);
}

static void is_waited_for_if_there_is_no_other(void **state)
{
	struct weir_req write = bench_req(WEIR_OP_WRITE, 0, 8), message = bench_req(WEIR_OP_SEND, 0, 8);
	struct bench *b = bench_new(64 * KIB, 2);

	(void)state;
	weir_engine_channel_busy(&b->engine, 0, true);
	bench_submit(b, &message); /* messages have but the one */
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

static void is_none_for_who_comes_alone(void **state)
{
	struct weir_req first = bench_req(WEIR_OP_READ, 0, 8), second = bench_req(WEIR_OP_READ, 0, 8);
	struct bench *b = bench_new(64 * KIB, 2);
	struct weir_wr *wr;

	(void)state;
	weir_engine_channel_busy(&b->engine, 0, true);
	wr = weir_lone_post(&b->engine, &first);
	assert_non_null(wr);
	assert_int_equal(wr->channel, 1);
	assert_ptr_equal(weir_lone_end(&b->engine, wr), &first);
	weir_engine_channel_busy(&b->engine, 1, true);
	assert_null(weir_lone_post(&b->engine, &second));
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("a busy channel is passed by", is_passed_by),
		SAYS("a busy channel is waited for if there is no other", is_waited_for_if_there_is_no_other),
		SAYS("a busy channel is none for who comes alone", is_none_for_who_comes_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
