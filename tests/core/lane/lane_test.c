/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lanes: channels lent to threads, and taken back with or without WRs in flight. */
#include <errno.h>

#include "core/engine/fragment.h"
#include "core/lane/lane.h"
#include "tests/support/engine_bench.h"

#define LANES 2
#define SHARE_WRS (BENCH_WRS / LANES)
#define WINDOW (4 * LANES * WEIR_LANE_BYTES)

static void lend(struct engine_bench *b, struct weir_lane *lanes)
{
	struct weir_lane_share share;
	uint16_t i;

	assert_true(weir_lane_may_lend(&b->engine, LANES, &share));
	for (i = 0; i < LANES; i++)
		assert_true(weir_lane_lend(&b->engine, &lanes[i], i, &share));
	assert_int_equal(b->window.bytes, LANES * WEIR_LANE_BYTES);
	assert_int_equal(b->window.wrs, LANES * SHARE_WRS);
}

static void take_back(struct engine_bench *b, struct weir_lane *lanes)
{
	unsigned int i;

	for (i = 0; i < LANES; i++)
		assert_true(weir_lane_close(&lanes[i]));
	for (i = 0; i < LANES; i++)
		weir_lane_return(&b->engine, &lanes[i], 1);
}

/* As a thread that posts @req on @lane. */
static void post(struct engine_bench *b, struct weir_lane *lane, struct weir_req *req)
{
	struct weir_wr *wr = lane->wrs[weir_lane_slot(lane, lane->posted)];

	assert_true(weir_lane_room(lane));
	weir_fragment_whole(wr, req);
	weir_lane_add(lane, 1, wr->length);
	b->posted[b->nr_posted++] = wr;
}

/* The engine has the whole window, and all WRs. */
static void expect_whole(struct engine_bench *b)
{
	const struct weir_wr *wr;
	unsigned int count = 0;

	for (wr = b->engine.free_wrs; wr; wr = wr->next)
		count++;
	assert_int_equal(count, BENCH_WRS);
	assert_true(weir_engine_is_idle(&b->engine));
	assert_int_equal(b->engine.channels.channel[0].in_flight, 0);
	assert_int_equal(b->engine.channels.channel[1].in_flight, 0);
	bench_free(b);
}

static void comes_back_as_it_was(void **state)
{
	struct engine_bench *b = bench_new(WINDOW, LANES);
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 4 * KIB);
	struct weir_lane lanes[LANES] = { 0 };
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		lend(b, lanes);
		take_back(b, lanes);
		assert_false(lanes[0].is_lent);
		assert_int_equal(b->window.bytes, 0);
		assert_int_equal(b->window.wrs, 0);
	}
	bench_submit(b, &req);
	bench_finish(b, 0);
	assert_int_equal(b->nr_done, 1);
	expect_whole(b);
}

static void posted_wrs_enter_the_engine(void **state)
{
	struct engine_bench *b = bench_new(WINDOW, LANES);
	struct weir_req first = bench_req(WEIR_OP_WRITE, 0, 4 * KIB);
	struct weir_req second = bench_req(WEIR_OP_READ, 64 * KIB, 4 * KIB);
	struct weir_req other = bench_req(WEIR_OP_WRITE, 128 * KIB, 2 * KIB);
	struct weir_lane lanes[LANES] = { 0 };

	(void)state;
	lend(b, lanes);
	post(b, &lanes[0], &first);
	post(b, &lanes[0], &second);
	post(b, &lanes[1], &other);
	take_back(b, lanes);
	assert_int_equal(b->window.bytes, 10 * KIB);
	assert_int_equal(b->window.wrs, 3);
	assert_ptr_equal(b->posted[0]->next, b->posted[1]);
	assert_null(b->posted[1]->next);
	assert_int_equal(b->engine.channels.channel[0].in_flight, 2);
	assert_int_equal(b->engine.channels.channel[1].in_flight, 1);
	bench_finish(b, 0);
	assert_int_equal(b->nr_done, 3);
	assert_int_equal(first.status | second.status | other.status, 0);
	lend(b, lanes);
	take_back(b, lanes);
	expect_whole(b);
}

static void a_later_request_waits_for_them(void **state)
{
	struct engine_bench *b = bench_new(WINDOW, LANES);
	struct weir_req write = bench_req(WEIR_OP_WRITE, 0, 4 * KIB);
	struct weir_req read = bench_req(WEIR_OP_READ, 2 * KIB, 4 * KIB);
	struct weir_req barrier = { .op = WEIR_OP_BARRIER, .deadline_ns = WEIR_NEVER };
	struct weir_lane lanes[LANES] = { 0 };

	(void)state;
	lend(b, lanes);
	post(b, &lanes[1], &write);
	take_back(b, lanes);
	bench_submit(b, &barrier);
	bench_submit(b, &read);
	assert_int_equal(b->nr_posted, 1);
	assert_int_equal(b->nr_done, 0);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_posted, 2);
	bench_complete(b, 1, 0);
	assert_int_equal(b->nr_done, 3);
	assert_ptr_equal(b->done[0], &write);
	expect_whole(b);
}

static void they_fail_as_others_do(void **state)
{
	struct engine_bench *b = bench_new(WINDOW, LANES);
	struct weir_req read = bench_req(WEIR_OP_READ, 0, 4 * KIB);
	struct weir_req write = bench_req(WEIR_OP_WRITE, 8 * KIB, 4 * KIB);
	struct weir_lane lanes[LANES] = { 0 };

	(void)state;
	read.retries = 1;
	lend(b, lanes);
	post(b, &lanes[0], &read);
	post(b, &lanes[0], &write);
	take_back(b, lanes);
	bench_complete(b, 0, -ECONNRESET);
	bench_complete(b, 1, -ECONNRESET);
	assert_int_equal(b->nr_failed, 1);
	assert_int_equal(b->failed[0], 0);
	assert_int_equal(b->nr_posted, 3); /* the read, on the other channel */
	assert_int_equal(b->posted[2]->channel, 1);
	bench_give_up(b, 0);
	bench_finish(b, 2);
	assert_int_equal(read.status, 0);
	assert_int_equal(write.status, -ECONNRESET);
	expect_whole(b);
}

static void is_lent_by_an_idle_engine_only(void **state)
{
	struct engine_bench *b = bench_new(WINDOW, LANES);
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 4 * KIB);
	struct weir_lane lanes[LANES] = { 0 };
	struct weir_lane_share share;

	(void)state;
	bench_submit(b, &req);
	assert_false(weir_lane_may_lend(&b->engine, LANES, &share));
	assert_false(weir_lane_lend(&b->engine, &lanes[0], 0, &share));
	assert_false(lanes[0].is_lent);
	bench_finish(b, 0);
	assert_true(weir_lane_may_lend(&b->engine, LANES, &share));
	weir_engine_channel_down(&b->engine, 1);
	assert_false(weir_lane_lend(&b->engine, &lanes[1], 1, &share));
	assert_int_equal(b->window.bytes, 0);
	expect_whole(b);
}

static void shares_half_of_the_window(void **state)
{
	const uint64_t half = 2 * WEIR_LANE_CHAIN_BYTES;
	struct engine_bench *b = bench_new(2 * half, LANES);
	struct weir_lane_share share;

	(void)state;
	assert_true(weir_lane_may_lend(&b->engine, 1, &share));
	assert_int_equal(share.bytes, half);
	assert_int_equal(share.wrs, BENCH_WRS);
	assert_true(weir_lane_may_lend(&b->engine, 2, &share));
	assert_int_equal(share.bytes, WEIR_LANE_CHAIN_BYTES);
	assert_int_equal(share.wrs, BENCH_WRS / 2);
	assert_false(weir_lane_may_lend(&b->engine, 3, &share));
	weir_window_lend(&b->window, 1, 1); /* another session's */
	assert_false(weir_lane_may_lend(&b->engine, 2, &share));
	weir_window_unlend(&b->window, 1, 1);
	bench_free(b);
}

static void leaves_wrs_for_chains(void **state)
{
	const uint32_t lanes = BENCH_WRS / WEIR_BATCH_MAX;
	struct engine_bench *b = bench_new(WINDOW, LANES);
	struct weir_lane_share share;

	(void)state;
	assert_true(weir_lane_may_lend(&b->engine, lanes, &share));
	assert_int_equal(share.wrs, WEIR_BATCH_MAX);
	assert_false(weir_lane_may_lend(&b->engine, lanes + 1, &share));
	bench_free(b);
}

/* More WRs than the ring has slots, and the last ones across its end. */
static void keeps_wrs_in_the_order_posted(void **state)
{
	struct engine_bench *b = bench_new(WINDOW, LANES);
	struct weir_lane lanes[LANES] = { 0 };
	struct weir_req reqs[SHARE_WRS + 8];
	struct weir_wr *oldest;
	uint32_t i;

	(void)state;
	lend(b, lanes);
	for (i = 0; i < SHARE_WRS + 8; i++) {
		reqs[i] = bench_req(WEIR_OP_WRITE, i * 4 * KIB, KIB);
		if (!weir_lane_room(&lanes[0])) {
			oldest = lanes[0].wrs[lanes[0].oldest];
			assert_ptr_equal(oldest->req, &reqs[i - SHARE_WRS]);
			assert_ptr_equal(lanes[0].wrs[weir_lane_pop(&lanes[0])], oldest);
		}
		post(b, &lanes[0], &reqs[i]);
	}
	assert_int_equal(lanes[0].posted, SHARE_WRS);
	assert_int_equal(lanes[0].bytes, SHARE_WRS * KIB);
	for (i = 0; i < SHARE_WRS - 4; i++)
		weir_lane_pop(&lanes[0]);
	assert_int_equal(lanes[0].bytes, 4 * KIB);
	take_back(b, lanes);
	assert_int_equal(b->window.bytes, 4 * KIB);
	assert_int_equal(b->engine.channels.channel[0].in_flight, 4);
	bench_finish(b, SHARE_WRS + 4);
	assert_int_equal(b->nr_done, 4);
	for (i = 0; i < 4; i++)
		assert_ptr_equal(b->done[i], &reqs[SHARE_WRS + 4 + i]);
	expect_whole(b);
}

static void is_not_used_while_a_request_may_be_before(void **state)
{
	struct weir_inbox_node node;
	struct weir_lane lane = { .is_lent = true };
	struct weir_inbox inbox;

	(void)state;
	weir_inbox_init(&inbox);
	assert_true(weir_lane_may_post(&lane, &inbox));
	weir_inbox_push(&inbox, &node);
	assert_false(weir_lane_may_post(&lane, &inbox));
	weir_inbox_take(&inbox);
	lane.is_lent = false;
	assert_false(weir_lane_may_post(&lane, &inbox));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		SAYS("an unused lane comes back as it was lent", comes_back_as_it_was),
		SAYS("WRs posted on a lane enter the engine", posted_wrs_enter_the_engine),
		SAYS("a later request waits for them", a_later_request_waits_for_them),
		SAYS("they fail as others do", they_fail_as_others_do),
		SAYS("only an idle engine lends, and only channels that are up",
		     is_lent_by_an_idle_engine_only),
		SAYS("half of the window is shared, and half is not lent",
		     shares_half_of_the_window),
		SAYS("a lane has WRs for a chain, or is not lent", leaves_wrs_for_chains),
		SAYS("WRs in flight keep the order in which they were posted",
		     keeps_wrs_in_the_order_posted),
		SAYS("a lane is not used while a request in the inbox may be before",
		     is_not_used_while_a_request_may_be_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
