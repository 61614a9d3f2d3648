/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: requests whose channels fail, and partial posts. */
#include "tests/support/engine_bench.h"

static void the_first_error_wins_and_waits(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 12 * KIB);
	struct engine_bench *b = bench_new(64 * KIB, 3);

	(void)state;
	bench_submit(b, &req);
	bench_complete(b, 1, -EACCES);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_done, 0);
	bench_complete(b, 2, 0);
	assert_int_equal(b->nr_done, 0);
	bench_give_up(b, b->posted[0]->channel);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req.status, -EACCES);
	bench_free(b);
}

static void an_error_stops_the_rest(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 40 * KIB);
	struct engine_bench *b = bench_new(8 * KIB, 3);

	(void)state;
	bench_submit(b, &req);
	assert_int_equal(b->nr_posted, 2);
	bench_complete(b, 0, -EACCES);
	bench_complete(b, 1, 0);
	assert_int_equal(b->nr_posted, 2);
	assert_int_equal(b->nr_done, 1);
	bench_free(b);
}

static void a_failed_channel_is_told_once(void **state)
{
	struct weir_req req[2] = { bench_req(WEIR_OP_WRITE, 0, 8), bench_req(WEIR_OP_WRITE, 8, 8) };
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &req[0]);
	bench_submit(b, &req[1]);
	bench_complete(b, 0, -EIO);
	bench_complete(b, 1, -ECONNRESET);
	assert_int_equal(b->nr_failed, 1);
	assert_int_equal(b->failed[0], 0);
	bench_give_up(b, 0);
	assert_int_equal(req[0].status, -EIO);
	assert_int_equal(req[1].status, -ECONNRESET);
	bench_free(b);
}

static void posted_changes_end_unknown(void **state)
{
	static const enum weir_op ops[] = { WEIR_OP_WRITE, WEIR_OP_CAS, WEIR_OP_FADD,
					    WEIR_OP_SEND };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		struct weir_req req = bench_req(ops[i], 0, 8);
		struct engine_bench *b = bench_new(64 * KIB, 2);

		req.retries = 9;
		bench_submit(b, &req);
		bench_complete(b, 0, -ECONNRESET);
		assert_int_equal(b->nr_done, ops[i] == WEIR_OP_SEND);
		bench_give_up(b, b->posted[0]->channel);
		assert_int_equal(b->nr_done, 1);
		assert_int_equal(b->nr_posted, 1);
		assert_int_equal(req.status, -ECONNRESET);
		bench_free(b);
	}
}

static void a_read_is_repeated_elsewhere(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 3);

	(void)state;
	req.retries = 1;
	bench_submit(b, &req);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_posted, 2);
	assert_int_not_equal(b->batches[1].channel, b->batches[0].channel);
	bench_complete(b, 1, -ECONNRESET);
	assert_int_equal(b->nr_posted, 2);
	assert_int_equal(req.status, -ECONNRESET);
	bench_free(b);
}

static void one_failure_costs_one_retry(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 12 * KIB);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	assert_int_equal(weir_engine_channel_up(&b->engine, 5, 8), 0);
	weir_engine_channel_down(&b->engine, 0);
	req.retries = 1;
	bench_submit(b, &req);
	assert_int_equal(weir_engine_channel_up(&b->engine, 0, 8), 0);
	bench_complete(b, 0, -ECONNRESET);
	bench_complete(b, 1, -ECONNRESET);
	assert_int_equal(b->nr_posted, 3);
	bench_complete(b, 2, -ECONNRESET);
	assert_int_equal(b->nr_posted, 6);
	bench_finish(b, 3);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

static void a_repeated_read_still_holds_writes(void **state)
{
	struct weir_req read = bench_req(WEIR_OP_READ, 0, 8);
	struct weir_req write = bench_req(WEIR_OP_WRITE, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	read.retries = 1;
	bench_submit(b, &read);
	bench_submit(b, &write);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_posted, 2);
	assert_ptr_equal(b->posted[1]->req, &read);
	bench_finish(b, 1);
	assert_int_equal(read.status, 0);
	assert_int_equal(write.status, 0);
	bench_free(b);
}

static void an_access_error_is_not_repeated(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	req.retries = 9;
	bench_submit(b, &req);
	bench_complete(b, 0, -EACCES);
	assert_int_equal(b->nr_posted, 1);
	assert_int_equal(req.status, -EACCES);
	bench_free(b);
}

static void never_posted_moves(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_FADD, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	bench_submit(b, &req);
	bench_complete(b, 0, -ENOTCONN);
	assert_int_equal(b->nr_posted, 2);
	assert_int_equal(b->batches[1].channel, 1);
	bench_complete(b, 1, 0);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

static void a_partial_post_of_a_cut_write_moves(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8 * KIB);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	bench_submit(b, &req);
	bench_complete(b, 1, -ENOTCONN);
	assert_int_equal(b->nr_posted, 3);
	assert_int_equal(b->posted[2]->offset, 4 * KIB);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_done, 0);
	bench_complete(b, 2, 0);
	assert_int_equal(b->nr_posted, 3);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

/*
 * The second part was posted and the first was not. Starting over would send the second part
 * twice.
 */
static void a_hole_in_a_cut_write_is_not_mended_by_sending_all(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8 * KIB);
	struct weir_req mine = bench_req(WEIR_OP_WRITE, 64 * KIB, 8 * KIB);
	struct engine_bench *b = bench_new(64 * KIB, 3);

	(void)state;
	mine.exclusive = true;
	bench_submit(b, &req);
	bench_complete(b, 0, -ENOTCONN);
	bench_complete(b, 1, 0);
	assert_int_equal(b->nr_posted, 2);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req.status, -ECONNRESET);
	bench_submit(b, &mine);
	bench_complete(b, 2, -ENOTCONN);
	bench_complete(b, 3, 0);
	assert_int_equal(b->nr_done, 1);
	bench_complete(b, 4, 0);
	bench_complete(b, 5, 0);
	assert_int_equal(b->nr_posted, 6);
	assert_int_equal(mine.status, 0);
	bench_free(b);
}

static void never_posted_with_no_channel_left_was_not_sent(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &req);
	bench_complete(b, 0, -ENOTCONN);
	assert_int_equal(b->nr_done, 0);
	bench_give_up(b, 0);
	assert_int_equal(req.status, -ENOTCONN);
	bench_free(b);
}

static void partly_sent_with_no_channel_left_is_unknown(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 40 * KIB);
	struct engine_bench *b = bench_new(4 * KIB, 1);

	(void)state;
	bench_submit(b, &req);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_posted, 2);
	weir_engine_channel_down(&b->engine, 0);
	bench_pull(b);
	assert_int_equal(b->nr_done, 0);
	bench_complete(b, 1, 0);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req.status, -ECONNRESET);
	bench_free(b);
}

static void the_last_channel_takes_all_along(void **state)
{
	struct weir_req posted = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req held = bench_req(WEIR_OP_READ, 0, 8);
	struct weir_req barrier = bench_req(WEIR_OP_BARRIER, 0, 0);
	struct weir_req behind = bench_req(WEIR_OP_READ, 64, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &posted);
	bench_submit(b, &held);
	bench_submit(b, &barrier);
	bench_submit(b, &behind);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_done, 0);
	bench_give_up(b, 0);
	assert_int_equal(b->nr_done, 4);
	assert_int_equal(posted.status, -ECONNRESET);
	assert_int_equal(held.status, -ENOTCONN);
	assert_int_equal(barrier.status, 0);
	assert_int_equal(behind.status, -ENOTCONN);
	bench_free(b);
}

static void others_outlive_channel_0_messages_do_not(void **state)
{
	struct weir_req message = bench_req(WEIR_OP_SEND, 0, 8);
	struct weir_req read = bench_req(WEIR_OP_READ, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	assert_int_equal(weir_engine_submit(&b->engine, &message, 0), 0);
	assert_int_equal(weir_engine_submit(&b->engine, &read, 0), 0);
	weir_engine_channel_down(&b->engine, 0);
	bench_pull(b);
	assert_int_equal(message.status, -ENOTCONN);
	assert_int_equal(b->batches[0].channel, 1);
	assert_int_equal(weir_engine_submit(&b->engine, &message, 0), -ENOTCONN);
	bench_complete(b, 0, 0);
	assert_int_equal(read.status, 0);
	bench_free(b);
}

static void without_channels_nothing_is_taken(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 0);

	(void)state;
	assert_int_equal(weir_engine_submit(&b->engine, &req, 0), -ENOTCONN);
	bench_free(b);
}

static void a_channel_comes_back_when_flushed(void **state)
{
	struct weir_req req[2] = { bench_req(WEIR_OP_WRITE, 0, 8), bench_req(WEIR_OP_READ, 8, 8) };
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	assert_int_equal(weir_engine_channel_up(&b->engine, 0, 64), -EBUSY);
	bench_submit(b, &req[0]);
	weir_engine_channel_down(&b->engine, 0);
	assert_int_equal(weir_engine_channel_up(&b->engine, 0, 64), -EBUSY);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_failed, 0);
	assert_int_equal(weir_engine_channel_up(&b->engine, 0, 64), 0);
	bench_submit(b, &req[1]);
	bench_complete(b, 1, 0);
	assert_int_equal(req[1].status, 0);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("the first error wins, and waits for the other parts",
		     the_first_error_wins_and_waits),
		SAYS("after an error nothing more of a request is posted", an_error_stops_the_rest),
		SAYS("a failed channel is told once", a_failed_channel_is_told_once),
		SAYS("changes that were posted on a failed channel end unknown",
		     posted_changes_end_unknown),
		SAYS("a read is repeated on another channel while retries are left",
		     a_read_is_repeated_elsewhere),
		SAYS("one failed channel costs a cut read one retry", one_failure_costs_one_retry),
		SAYS("a read that is repeated still holds later writes",
		     a_repeated_read_still_holds_writes),
		SAYS("a refused access is not repeated", an_access_error_is_not_repeated),
		SAYS("an unposted request moves to another channel", never_posted_moves),
		SAYS("a cut write of which a part was never posted moves",
		     a_partial_post_of_a_cut_write_moves),
		SAYS("a fragmented write with a hole restarts only if it is safe to repeat",
		     a_hole_in_a_cut_write_is_not_mended_by_sending_all),
		SAYS("with no channel left, an unposted request ends as not sent",
		     never_posted_with_no_channel_left_was_not_sent),
		SAYS("with no channel left, a partly sent request ends as unknown",
		     partly_sent_with_no_channel_left_is_unknown),
		SAYS("the last channel takes along all that waits",
		     the_last_channel_takes_all_along),
		SAYS("without channel 0 messages end and others go on",
		     others_outlive_channel_0_messages_do_not),
		SAYS("without channels nothing is taken", without_channels_nothing_is_taken),
		SAYS("a channel comes back when all of its former life is flushed",
		     a_channel_comes_back_when_flushed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
