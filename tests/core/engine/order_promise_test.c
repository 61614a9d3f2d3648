/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: order, barriers, batches, and how requests are fragmented. */
#include "tests/support/engine_bench.h"

static void posts_alone_at_once(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	bench_submit(b, &req);
	assert_int_equal(b->nr_batches, 1);
	assert_int_equal(b->batches[0].count, 1);
	assert_ptr_equal(b->posted[0]->req, &req);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

static void chains_ready_requests(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 2);
	static struct weir_req req[40];
	int i;

	(void)state;
	for (i = 0; i < 40; i++) {
		req[i] = bench_req(WEIR_OP_WRITE, 8 * i, 8);
		assert_int_equal(weir_engine_submit(&b->engine, &req[i], 0), 0);
	}
	bench_pull(b);
	assert_int_equal(b->nr_batches, 2);
	assert_int_equal(b->batches[0].count, WEIR_BATCH_MAX);
	assert_int_equal(b->batches[1].count, 40 - WEIR_BATCH_MAX);
	assert_int_not_equal(b->batches[0].channel, b->batches[1].channel);
	bench_finish(b, 0);
	assert_int_equal(b->nr_done, 40);
	bench_free(b);
}

static void spreads_large_ones(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 16 * KIB);
	struct engine_bench *b = bench_new(64 * KIB, 4);
	int i;

	(void)state;
	bench_submit(b, &req);
	assert_int_equal(b->nr_batches, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(b->batches[i].channel, i);
	bench_finish(b, 0);
	bench_free(b);
}

static void respects_depth(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 0);
	struct weir_req req[5];
	int i;

	(void)state;
	assert_int_equal(weir_engine_channel_up(&b->engine, 3, 2), 0);
	for (i = 0; i < 5; i++) {
		req[i] = bench_req(WEIR_OP_READ, 0, 8);
		bench_submit(b, &req[i]);
	}
	assert_int_equal(b->nr_posted, 2);
	bench_finish(b, 0);
	assert_int_equal(b->nr_done, 5);
	bench_free(b);
}

static void overlapping_writes_take_turns(void **state)
{
	struct weir_req first = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req second = bench_req(WEIR_OP_WRITE, 4, 8);
	struct weir_req third = bench_req(WEIR_OP_READ, 8, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	bench_submit(b, &first);
	bench_submit(b, &second);
	bench_submit(b, &third);
	assert_int_equal(b->nr_posted, 1);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_posted, 2);
	assert_ptr_equal(b->posted[1]->req, &second);
	bench_complete(b, 1, 0);
	assert_ptr_equal(b->posted[2]->req, &third);
	bench_complete(b, 2, 0);
	bench_free(b);
}

static void a_cut_write_holds_until_its_last_part(void **state)
{
	struct weir_req write = bench_req(WEIR_OP_WRITE, 0, 12 * KIB);
	struct weir_req read = bench_req(WEIR_OP_READ, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 2);

	(void)state;
	bench_submit(b, &write);
	bench_submit(b, &read);
	assert_int_equal(b->nr_posted, 3);
	bench_complete(b, 0, 0);
	bench_complete(b, 2, 0);
	assert_int_equal(b->nr_posted, 3);
	bench_complete(b, 1, 0);
	assert_int_equal(b->nr_posted, 4);
	bench_complete(b, 3, 0);
	bench_free(b);
}

static void messages_keep_their_order(void **state)
{
	struct engine_bench *b = bench_new(64 * KIB, 2);
	struct weir_req req[3];
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		req[i] = bench_req(WEIR_OP_SEND, 0, 8 * i);
		bench_submit(b, &req[i]);
	}
	assert_int_equal(b->nr_posted, 3);
	for (i = 0; i < 3; i++) {
		assert_ptr_equal(b->posted[i]->req, &req[i]);
		assert_int_equal(b->batches[i].channel, 0);
	}
	bench_finish(b, 0);
	assert_int_equal(b->nr_done, 3);
	bench_free(b);
}

static void a_barrier_alone_is_done_at_once(void **state)
{
	struct weir_req barrier = bench_req(WEIR_OP_BARRIER, 0, 0);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &barrier);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(barrier.status, 0);
	bench_free(b);
}

static void a_barrier_orders_everything(void **state)
{
	struct weir_req before = bench_req(WEIR_OP_READ, 0, 8);
	struct weir_req message = bench_req(WEIR_OP_SEND, 0, 8);
	struct weir_req barrier = bench_req(WEIR_OP_BARRIER, 0, 0);
	struct weir_req after = bench_req(WEIR_OP_READ, 100, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &before);
	bench_submit(b, &message);
	bench_submit(b, &barrier);
	bench_submit(b, &after);
	assert_int_equal(b->nr_posted, 2);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_posted, 2);
	bench_complete(b, 1, 0);
	assert_int_equal(b->nr_posted, 3);
	assert_ptr_equal(b->done[2], &barrier);
	bench_complete(b, 2, 0);
	assert_int_equal(b->nr_done, 4);
	bench_free(b);
}

static void a_cancelled_barrier_still_orders(void **state)
{
	struct weir_req before = bench_req(WEIR_OP_READ, 0, 8);
	struct weir_req barrier = bench_req(WEIR_OP_BARRIER, 0, 0);
	struct weir_req after = bench_req(WEIR_OP_READ, 100, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &before);
	bench_submit(b, &barrier);
	bench_submit(b, &after);
	assert_int_equal(weir_engine_cancel(&b->engine, &barrier), 0);
	bench_pull(b);
	assert_int_equal(barrier.status, -ECANCELED);
	assert_int_equal(b->nr_posted, 1);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_posted, 2);
	bench_complete(b, 1, 0);
	bench_free(b);
}

static void two_barriers_pass_one_by_one(void **state)
{
	struct weir_req barrier[2], req[3];
	struct engine_bench *b = bench_new(64 * KIB, 1);
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		req[i] = bench_req(WEIR_OP_READ, 0, 8);
		bench_submit(b, &req[i]);
		if (i == 2)
			break;
		barrier[i] = bench_req(WEIR_OP_BARRIER, 0, 0);
		bench_submit(b, &barrier[i]);
	}
	for (i = 0; i < 3; i++) {
		assert_int_equal(b->nr_posted, i + 1);
		bench_complete(b, i, 0);
	}
	assert_int_equal(b->nr_done, 5);
	bench_free(b);
}

static void the_order_holds_behind_a_barrier(void **state)
{
	struct weir_req before = bench_req(WEIR_OP_READ, 0, 8);
	struct weir_req barrier = bench_req(WEIR_OP_BARRIER, 0, 0);
	struct weir_req write = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req read = bench_req(WEIR_OP_READ, 0, 8);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	bench_submit(b, &before);
	bench_submit(b, &barrier);
	bench_submit(b, &write);
	bench_submit(b, &read);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_posted, 2);
	assert_ptr_equal(b->posted[1]->req, &write);
	bench_finish(b, 1);
	assert_int_equal(b->nr_done, 4);
	bench_free(b);
}

/*
 * The window is full. A request that waits for room is adjacent to a request behind the
 * barrier.
 */
static void a_request_held_back_is_before_the_barrier(void **state)
{
	static const struct weir_engine_config config = { .fragment_bytes = 4 * KIB,
							  .chain_max = WEIR_BATCH_MAX,
							  .sge_max = WEIR_SGE_MAX,
							  .merge = true };
	struct engine_bench *b = bench_new_with(&config, 8 * KIB, 2);
	struct weir_req full = bench_req(WEIR_OP_READ, 1 << 20, 8 * KIB);
	struct weir_req before[2], barrier = bench_req(WEIR_OP_BARRIER, 0, 0), after[2];
	int i;

	(void)state;
	bench_submit(b, &full);
	assert_int_equal(b->nr_posted, 2);
	for (i = 0; i < 2; i++) {
		before[i] = bench_req(WEIR_OP_WRITE, 1024 * i, 1024);
		bench_submit(b, &before[i]);
	}
	bench_submit(b, &barrier);
	for (i = 0; i < 2; i++) {
		after[i] = bench_req(WEIR_OP_WRITE, 2048 + 1024 * i, 1024);
		bench_submit(b, &after[i]);
	}
	assert_int_equal(b->nr_posted, 2);

	bench_complete(b, 0, 0); /* room for all four */
	assert_int_equal(b->nr_posted, 3);
	assert_int_equal(b->posted[2]->length, 2048);
	assert_int_equal(b->nr_done, 0);
	bench_complete(b, 2, 0);
	assert_int_equal(b->nr_done, 2); /* the barrier also waits for the earlier requests */
	assert_int_equal(b->nr_posted, 3);
	bench_complete(b, 1, 0);
	assert_ptr_equal(b->done[3], &barrier);
	assert_int_equal(b->nr_posted, 4);
	assert_int_equal(b->posted[3]->length, 2048);
	bench_complete(b, 3, 0);
	assert_int_equal(b->nr_done, 6);
	bench_free(b);
}

static void a_barrier_waits_for_each_part_that_the_window_lets_through(void **state)
{
	struct weir_req before = bench_req(WEIR_OP_WRITE, 0, 40 * KIB);
	struct weir_req barrier = bench_req(WEIR_OP_BARRIER, 0, 0);
	struct weir_req after = bench_req(WEIR_OP_READ, 1 << 20, 8);
	struct engine_bench *b = bench_new(8 * KIB, 2);
	unsigned int i;

	(void)state;
	bench_submit(b, &before);
	bench_submit(b, &barrier);
	bench_submit(b, &after);
	for (i = 0; i < 10; i++) {
		assert_int_equal(b->nr_done, 0);
		assert_true(b->nr_posted <= 10);
		bench_complete(b, i, 0);
	}
	assert_int_equal(b->nr_done, 2);
	assert_ptr_equal(b->posted[10]->req, &after);
	bench_complete(b, 10, 0);
	bench_free(b);
}

/* Another engine on the same NIC holds the whole window, and gives it back late. */
static void a_barrier_that_waits_for_the_window_of_others_still_orders(void **state)
{
	struct weir_req before = bench_req(WEIR_OP_READ, 0, 4 * KIB);
	struct weir_req barrier = bench_req(WEIR_OP_BARRIER, 0, 0);
	struct weir_req after = bench_req(WEIR_OP_READ, 8 * KIB, 4 * KIB);
	struct engine_bench *b = bench_new(4 * KIB, 2);
	struct weir_window_waiter other;

	(void)state;
	weir_window_waiter_init(&other);
	assert_int_equal(weir_window_take(&b->window, &other, 4 * KIB), 0);
	bench_submit(b, &before);
	bench_submit(b, &barrier);
	bench_submit(b, &after);
	assert_int_equal(b->nr_posted, 0);
	weir_window_give(&b->window, 4 * KIB);
	bench_pull(b);
	assert_int_equal(b->nr_posted, 1);
	assert_ptr_equal(b->posted[0]->req, &before);
	assert_int_equal(b->nr_done, 0);
	bench_complete(b, 0, 0);
	assert_ptr_equal(b->done[1], &barrier);
	assert_ptr_equal(b->posted[1]->req, &after);
	bench_complete(b, 1, 0);
	bench_free(b);
}

static void cuts_local_memory_along(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_WRITE, 1 << 20, 10 * KIB);
	struct engine_bench *b = bench_new(64 * KIB, 1);

	(void)state;
	req.nr_sge = 3;
	req.sge[0] = (struct weir_sge){ 0x1000, 3 * KIB, 1 };
	req.sge[1] = (struct weir_sge){ 0x9000, 6 * KIB, 2 };
	req.sge[2] = (struct weir_sge){ 0x5000, 1 * KIB, 3 };
	bench_submit(b, &req);
	assert_int_equal(b->nr_posted, 3);

	assert_int_equal(b->posted[0]->nr_sge, 2);
	assert_int_equal(b->posted[0]->sge[0].length, 3 * KIB);
	assert_int_equal(b->posted[0]->sge[1].addr, 0x9000);
	assert_int_equal(b->posted[0]->sge[1].length, 1 * KIB);
	assert_int_equal(b->posted[1]->offset, 4 * KIB);
	assert_int_equal(b->posted[1]->nr_sge, 1);
	assert_int_equal(b->posted[1]->sge[0].addr, 0x9000 + 1 * KIB);
	assert_int_equal(b->posted[1]->sge[0].length, 4 * KIB);
	assert_int_equal(b->posted[2]->length, 2 * KIB);
	assert_int_equal(b->posted[2]->nr_sge, 2);
	assert_int_equal(b->posted[2]->sge[0].addr, 0x9000 + 5 * KIB);
	assert_int_equal(b->posted[2]->sge[1].addr, 0x5000);
	assert_int_equal(b->posted[2]->sge[1].lkey, 3);
	bench_finish(b, 0);
	bench_free(b);
}

static void larger_than_the_window_progresses(void **state)
{
	struct weir_req req = bench_req(WEIR_OP_READ, 0, 100 * KIB);
	struct engine_bench *b = bench_new(8 * KIB, 2);

	(void)state;
	bench_submit(b, &req);
	assert_int_equal(b->nr_posted, 2);
	bench_finish(b, 0);
	assert_int_equal(b->nr_posted, 25);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req.status, 0);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("a request that comes alone is posted at once, alone", posts_alone_at_once),
		SAYS("requests ready together share doorbells", chains_ready_requests),
		SAYS("the parts of a large one go to all channels", spreads_large_ones),
		SAYS("no channel gets more than its depth", respects_depth),
		SAYS("overlapping writes take turns", overlapping_writes_take_turns),
		SAYS("a cut write holds a read until its last part is done",
		     a_cut_write_holds_until_its_last_part),
		SAYS("messages keep their order, on channel 0", messages_keep_their_order),
		SAYS("a barrier with nothing before it is done at once",
		     a_barrier_alone_is_done_at_once),
		SAYS("a barrier orders everything", a_barrier_orders_everything),
		SAYS("a cancelled barrier still orders", a_cancelled_barrier_still_orders),
		SAYS("two barriers pass one by one", two_barriers_pass_one_by_one),
		SAYS("requests behind a barrier keep their order",
		     the_order_holds_behind_a_barrier),
		SAYS("a request held back by the window is before the barrier, and merges with no "
		     "request behind it",
		     a_request_held_back_is_before_the_barrier),
		SAYS("a barrier waits for each part that the window lets through",
		     a_barrier_waits_for_each_part_that_the_window_lets_through),
		SAYS("a barrier still orders behind a request that waits for the window",
		     a_barrier_that_waits_for_the_window_of_others_still_orders),
		SAYS("local memory is cut along with the request", cuts_local_memory_along),
		SAYS("a request larger than the window progresses",
		     larger_than_the_window_progresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
