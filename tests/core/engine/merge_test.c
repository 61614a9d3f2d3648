/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: merging into a WR, chaining, and the status of each request. */
#include "tests/support/engine_bench.h"

#define PAGE (4 * KIB)
#define PAGES_MAX 64

static const struct weir_engine_config hybrid = { .fragment_bytes = 64 * KIB,
						  .chain_max = WEIR_BATCH_MAX,
						  .sge_max = WEIR_WR_SGE_MAX,
						  .merge = true };

/* Submit without a pull, as a host that pulls later does. */
static void gather(struct engine_bench *b, struct weir_req *req)
{
	assert_int_equal(weir_engine_submit(&b->engine, req, 0), 0);
}

static struct weir_req page(enum weir_op op, unsigned int number)
{
	struct weir_req req = bench_req(op, 1024ull * KIB + number * PAGE, PAGE);

	req.sge[0].addr = 0x1000000ull * (number + 1);
	return req;
}

/* WR number @i of @b carries @count pages, beginning with the page of @first. */
static void assert_posted(const struct engine_bench *b, unsigned int i,
			  const struct weir_req *first, unsigned int count)
{
	const struct weir_wr *wr = b->posted[i];

	assert_true(i < b->nr_posted);
	assert_ptr_equal(wr->req, first);
	assert_int_equal(wr->nr_reqs, count);
	assert_int_equal(wr->length, count * PAGE);
}

static void neighbours_meet_in_any_order(void **state)
{
	static const unsigned int orders[][4] = {
		{ 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 1, 3, 0, 2 }, { 2, 0, 3, 1 }
	};
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
		struct engine_bench *b = bench_new_with(&hybrid, 1024 * KIB, 1);
		struct weir_req req[4];

		for (j = 0; j < 4; j++) {
			req[orders[i][j]] = page(WEIR_OP_WRITE, orders[i][j]);
			gather(b, &req[orders[i][j]]);
		}
		bench_pull(b);
		assert_int_equal(b->nr_posted, 1);
		assert_posted(b, 0, &req[0], 4);
		assert_int_equal(b->posted[0]->nr_sge, 4);
		for (j = 0; j < 4; j++)
			assert_int_equal(b->posted[0]->sge[j].addr, req[j].sge[0].addr);
		bench_complete(b, 0, 0);
		assert_int_equal(b->nr_done, 4);
		bench_free(b);
	}
}

static void local_neighbours_share_an_entry(void **state)
{
	struct engine_bench *b = bench_new_with(&hybrid, 1024 * KIB, 1);
	static struct weir_req req[16];
	unsigned int i;

	(void)state;
	for (i = 0; i < 16; i++) {
		req[i] = page(WEIR_OP_READ, i);
		req[i].sge[0].addr = 0x1000000ull + i * PAGE;
		gather(b, &req[i]);
	}
	bench_pull(b);
	assert_posted(b, 0, &req[0], 16);
	assert_int_equal(b->posted[0]->nr_sge, 1);
	assert_int_equal(b->posted[0]->sge[0].addr, 0x1000000);
	assert_int_equal(b->posted[0]->sge[0].length, 16 * PAGE);
	bench_finish(b, 0);
	bench_free(b);
}

/*
 * All entries are taken. A request that extends the last entry still merges, and uses no
 * further entry.
 */
static void joining_the_last_entry_needs_no_entry(void **state)
{
	struct weir_engine_config config = hybrid;
	struct engine_bench *b;
	static struct weir_req req[WEIR_WR_SGE_MAX + 1];
	unsigned int i;

	(void)state;
	config.fragment_bytes = 1024 * KIB;
	b = bench_new_with(&config, 4096 * KIB, 1);
	for (i = 0; i <= WEIR_WR_SGE_MAX; i++) {
		req[i] = page(WEIR_OP_WRITE, i);
		if (i == WEIR_WR_SGE_MAX)
			req[i].sge[0].addr = req[i - 1].sge[0].addr + PAGE;
		gather(b, &req[i]);
	}
	bench_pull(b);
	assert_int_equal(b->nr_posted, 1);
	assert_posted(b, 0, &req[0], WEIR_WR_SGE_MAX + 1);
	assert_int_equal(b->posted[0]->nr_sge, WEIR_WR_SGE_MAX);
	assert_int_equal(b->posted[0]->sge[WEIR_WR_SGE_MAX - 1].length, 2 * PAGE);
	assert_ptr_equal(b->wrs[1].next, &b->wrs[2]);
	assert_null(b->wrs[1].req);
	bench_finish(b, 0);
	bench_free(b);
}

/* One request at a time, each posted before the next comes: nothing is ready to merge. */
static struct engine_bench *stream(struct weir_req *req, unsigned int count,
				   const struct weir_engine_config *config)
{
	struct engine_bench *b = bench_new_with(config, 1024 * KIB, 2);
	unsigned int i;

	for (i = 0; i < count; i++) {
		req[i] = page(WEIR_OP_WRITE, i);
		gather(b, &req[i]);
		bench_pull(b);
	}
	return b;
}

/* The first request cannot yet be known to begin a stream, so WEIR_STREAM_WRS + 1 are posted. */
static void requests_beside_a_stream_gather(void **state)
{
	static struct weir_req req[WEIR_STREAM_WRS + 9];
	struct engine_bench *b = stream(req, WEIR_STREAM_WRS + 9, &hybrid);

	(void)state;
	assert_int_equal(b->nr_posted, WEIR_STREAM_WRS + 1);
	bench_complete(b, 0, 0); /* the first request, which does not count as a stream */
	assert_int_equal(b->nr_posted, WEIR_STREAM_WRS + 1);
	bench_complete(b, 1, 0);
	assert_int_equal(b->nr_posted, WEIR_STREAM_WRS + 2);
	assert_posted(b, WEIR_STREAM_WRS + 1, &req[WEIR_STREAM_WRS + 1], 8);
	bench_finish(b, 2);
	assert_int_equal(b->nr_done, WEIR_STREAM_WRS + 9);
	bench_free(b);
}

static void gathered_requests_end_with_the_failed_stream(void **state)
{
	static struct weir_req req[WEIR_STREAM_WRS + 3];
	struct engine_bench *b = stream(req, WEIR_STREAM_WRS + 3, &hybrid);
	uint16_t channel = b->posted[1]->channel;

	(void)state;
	assert_int_equal(weir_engine_cancel(&b->engine, &req[WEIR_STREAM_WRS + 2]), 0);
	bench_pull(b);
	assert_int_equal(b->nr_done, 1);
	bench_complete(b, 0, 0);
	bench_complete(b, 1, -EIO);
	assert_posted(b, WEIR_STREAM_WRS + 1, &req[WEIR_STREAM_WRS + 1], 1);
	bench_finish(b, 2);
	bench_give_up(b, channel); /* the failed WR may still have been in flight */
	assert_int_equal(b->nr_done, WEIR_STREAM_WRS + 3);
	bench_free(b);
}

static void unmergeable_requests_do_not_wait(void **state)
{
	struct weir_engine_config config = hybrid;
	static struct weir_req req[2 * WEIR_STREAM_WRS];
	struct weir_req other = page(WEIR_OP_WRITE, 99);
	struct engine_bench *b = stream(req, WEIR_STREAM_WRS + 1, &config);

	(void)state;
	gather(b, &other);
	bench_pull(b);
	assert_posted(b, WEIR_STREAM_WRS + 1, &other, 1);
	bench_finish(b, 0);
	bench_free(b);

	config.merge = false;
	b = stream(req, 2 * WEIR_STREAM_WRS, &config);
	assert_int_equal(b->nr_posted, 2 * WEIR_STREAM_WRS);
	bench_finish(b, 0);
	bench_free(b);
}

/* The requests of each pair are adjacent and still need two WRs. */
static void different_requests_do_not_merge(void **state)
{
	struct weir_req pairs[][2] = {
		{ page(WEIR_OP_READ, 0), page(WEIR_OP_WRITE, 1) },
		{ page(WEIR_OP_READ, 0), page(WEIR_OP_READ, 1) },
		{ bench_req(WEIR_OP_FADD, 0, 8), bench_req(WEIR_OP_FADD, 8, 8) },
		{ page(WEIR_OP_READ, 0), page(WEIR_OP_READ, 2) },
		{ bench_req(WEIR_OP_READ, 0, 8), bench_req(WEIR_OP_READ, UINT64_MAX - 7, 8) },
	};
	size_t i;

	(void)state;
	pairs[1][1].rkey = 99;
	for (i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		struct engine_bench *b = bench_new_with(&hybrid, 1024 * KIB, 1);

		gather(b, &pairs[i][0]);
		gather(b, &pairs[i][1]);
		bench_pull(b);
		assert_int_equal(b->nr_posted, 2);
		assert_int_equal(b->nr_batches, 1);
		bench_finish(b, 0);
		bench_free(b);
	}
}

static void messages_stay_apart(void **state)
{
	struct weir_req req[2] = { bench_req(WEIR_OP_SEND, 0, 8), bench_req(WEIR_OP_SEND, 0, 8) };
	struct engine_bench *b = bench_new_with(&hybrid, 1024 * KIB, 1);

	(void)state;
	gather(b, &req[0]);
	gather(b, &req[1]);
	bench_pull(b);
	assert_int_equal(b->nr_posted, 2);
	bench_finish(b, 0);
	bench_free(b);
}

/* 40 pages: a fragment holds 16, so the third WR has 8. */
static void a_merged_wr_has_its_bounds(void **state)
{
	struct engine_bench *b = bench_new_with(&hybrid, 1024 * KIB, 1);
	static struct weir_req req[40];
	unsigned int i;

	(void)state;
	for (i = 0; i < 40; i++) {
		req[i] = page(WEIR_OP_WRITE, i);
		gather(b, &req[i]);
	}
	bench_pull(b);
	assert_int_equal(b->nr_posted, 3);
	assert_posted(b, 0, &req[0], 16);
	assert_posted(b, 1, &req[16], 16);
	assert_posted(b, 2, &req[32], 8);
	bench_finish(b, 0);
	assert_int_equal(b->nr_done, 40);
	bench_free(b);
}

static void a_device_with_few_entries_merges_fewer(void **state)
{
	struct weir_engine_config config = hybrid;
	static struct weir_req req[16];
	struct engine_bench *b;
	unsigned int i;

	(void)state;
	config.sge_max = WEIR_SGE_MAX;
	b = bench_new_with(&config, 1024 * KIB, 1);
	for (i = 0; i < 16; i++) {
		req[i] = page(WEIR_OP_READ, i);
		gather(b, &req[i]);
	}
	bench_pull(b);
	assert_int_equal(b->nr_posted, 2);
	assert_posted(b, 0, &req[0], 8);
	assert_posted(b, 1, &req[8], 8);
	bench_finish(b, 0);
	bench_free(b);
}

/* A write over the middle page comes between the writes of the other two pages. */
static void a_conflict_is_not_crossed(void **state)
{
	struct weir_req req[4] = { page(WEIR_OP_WRITE, 1), page(WEIR_OP_WRITE, 1),
				   page(WEIR_OP_WRITE, 0), page(WEIR_OP_WRITE, 2) };
	struct engine_bench *b = bench_new_with(&hybrid, 1024 * KIB, 1);
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++)
		gather(b, &req[i]);
	bench_pull(b);
	assert_int_equal(b->nr_posted, 1);
	assert_posted(b, 0, &req[2], 3);
	assert_ptr_equal(req[2].merge_next, &req[0]);
	bench_complete(b, 0, 0);
	assert_posted(b, 1, &req[1], 1);
	bench_finish(b, 1);
	assert_int_equal(b->nr_done, 4);
	bench_free(b);
}

struct merge_way {
	const char *sentence;
	uint16_t chain_max;
	bool merge;
	unsigned int wrs, doorbells; /* for 8 pages in two clusters of 4, and a distant one */
};

static const struct merge_way ways[] = {
	{ "single: each request is a WR and a doorbell", 1, false, 9, 9 },
	{ "doorbell: each is a WR, and they share a doorbell", 32, false, 9, 1 },
	{ "merge: neighbours are one WR, and each WR has a doorbell", 1, true, 3, 3 },
	{ "hybrid: neighbours are one WR, and they share a doorbell", 32, true, 3, 1 },
};

static void batches(void **state)
{
	static const unsigned int pages[] = { 0, 20, 1, 21, 2, 22, 3, 23, 60 };
	const struct merge_way *way = *state;
	struct weir_engine_config config = hybrid;
	static struct weir_req req[9];
	struct engine_bench *b;
	unsigned int i;

	config.chain_max = way->chain_max;
	config.merge = way->merge;
	b = bench_new_with(&config, 1024 * KIB, 1);
	for (i = 0; i < 9; i++) {
		req[i] = page(WEIR_OP_WRITE, pages[i]);
		gather(b, &req[i]);
	}
	bench_pull(b);
	assert_int_equal(b->nr_posted, way->wrs);
	assert_int_equal(b->nr_batches, way->doorbells);
	bench_finish(b, 0);
	assert_int_equal(b->nr_done, 9);
	bench_free(b);
}

/* A window of 64 KiB: a merged WR takes at most a quarter, 4 pages. */
static void requests_waiting_for_the_window_merge(void **state)
{
	struct engine_bench *b = bench_new_with(&hybrid, 64 * KIB, 1);
	struct weir_req large = bench_req(WEIR_OP_READ, 0, 64 * KIB), req[8];
	unsigned int i;

	(void)state;
	bench_submit(b, &large);
	assert_int_equal(b->nr_posted, 1);
	for (i = 0; i < 8; i++) {
		req[i] = page(WEIR_OP_WRITE, i);
		bench_submit(b, &req[i]);
	}
	assert_int_equal(b->nr_posted, 1);
	bench_complete(b, 0, 0);
	assert_int_equal(b->nr_posted, 3);
	assert_posted(b, 1, &req[0], 4);
	assert_posted(b, 2, &req[4], 4);
	bench_finish(b, 1);
	bench_free(b);
}

static void each_meets_its_own_fate(void **state)
{
	struct weir_req req[3] = { page(WEIR_OP_WRITE, 0), page(WEIR_OP_WRITE, 1),
				   page(WEIR_OP_WRITE, 2) };
	struct engine_bench *b = bench_new_with(&hybrid, 1024 * KIB, 3);
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		gather(b, &req[i]);
	bench_pull(b);
	assert_posted(b, 0, &req[0], 3);
	bench_complete(b, 0, -EACCES);
	assert_int_equal(b->nr_done, 0);
	assert_int_equal(b->nr_posted, 4);
	for (i = 1; i < 4; i++) {
		assert_int_equal(b->posted[i]->nr_reqs, 1);
		bench_complete_only(b, i, b->posted[i]->req == &req[1] ? -EACCES : 0);
	}
	bench_pull(b);
	assert_int_equal(b->nr_done, 3);
	assert_int_equal(req[0].status, 0);
	assert_int_equal(req[1].status, -EACCES);
	assert_int_equal(req[2].status, 0);
	bench_free(b);
}

/* The statuses of two merged requests when the WR ends with @wr_status. */
struct fate {
	const char *sentence;
	enum weir_op op;
	int wr_status;
	int status; /* the status of each request; 0 if it was posted again */
};

static const struct fate fates[] = {
	{ "a read with a local fault is tried alone", WEIR_OP_READ, -EFAULT, 0 },
	{ "a write with a local fault is tried alone", WEIR_OP_WRITE, -EFAULT, 0 },
	{ "merged writes that were lost end unknown", WEIR_OP_WRITE, -ECONNRESET, -ECONNRESET },
	{ "merged reads that were lost are repeated", WEIR_OP_READ, -ECONNRESET, 0 },
	{ "what was not posted goes elsewhere", WEIR_OP_WRITE, -ENOTCONN, 0 },
	{ "any other error is everybody's", WEIR_OP_READ, -EIO, -EIO },
};

static void ends(void **state)
{
	const struct fate *fate = *state;
	struct weir_req req[2] = { page(fate->op, 0), page(fate->op, 1) };
	struct engine_bench *b = bench_new_with(&hybrid, 1024 * KIB, 2);
	uint16_t channel;

	req[0].retries = req[1].retries = 1;
	gather(b, &req[0]);
	gather(b, &req[1]);
	bench_pull(b);
	assert_posted(b, 0, &req[0], 2);
	channel = b->posted[0]->channel;
	bench_complete(b, 0, fate->wr_status);
	/* A request that changes memory waits until no part can arrive any more. */
	assert_int_equal(b->nr_done, fate->status && fate->op == WEIR_OP_READ ? 2 : 0);
	assert_int_equal(weir_engine_channel_up(&b->engine, channel, 64), 0);
	bench_pull(b);
	assert_int_equal(b->nr_done, fate->status ? 2 : 0);
	bench_finish(b, 1);
	assert_int_equal(b->nr_done, 2);
	assert_int_equal(req[0].status, fate->status);
	assert_int_equal(req[1].status, fate->status);
	bench_free(b);
}

/* The deadline of a merged request ends the WR by a flush, and the other request survives. */
static void a_late_request_fails_the_channel_of_its_wr(void **state)
{
	struct weir_req req[2] = { page(WEIR_OP_READ, 0), page(WEIR_OP_READ, 1) };
	struct engine_bench *b = bench_new_with(&hybrid, 1024 * KIB, 2);

	(void)state;
	req[1].deadline_ns = 10;
	req[0].retries = req[1].retries = 1;
	gather(b, &req[0]);
	gather(b, &req[1]);
	bench_pull(b);
	weir_engine_expired(&b->engine, 10);
	bench_pull(b);
	assert_int_equal(b->nr_failed, 1);
	bench_complete(b, 0, -ECONNRESET);
	assert_int_equal(b->nr_done, 1);
	assert_int_equal(req[1].status, -ETIMEDOUT);
	assert_posted(b, 1, &req[0], 1);
	bench_complete(b, 1, 0);
	assert_int_equal(req[0].status, 0);
	bench_free(b);
}

#define NR(table) (sizeof(table) / sizeof(*(table)))
#define SAID 14 /* tests outside the tables */

int main(void)
{
	struct CMUnitTest tests[SAID + NR(ways) + NR(fates)] = {
		SAYS("neighbours are merged whatever order they came in",
		     neighbours_meet_in_any_order),
		SAYS("local memory that goes on is one entry", local_neighbours_share_an_entry),
		SAYS("a request that joins the last entry needs no entry of its own",
		     joining_the_last_entry_needs_no_entry),
		SAYS("requests beside a stream gather until a WR of the stream completes",
		     requests_beside_a_stream_gather),
		SAYS("gathered requests end or continue when the stream fails",
		     gathered_requests_end_with_the_failed_stream),
		SAYS("a request that cannot merge does not wait for a stream",
		     unmergeable_requests_do_not_wait),
		SAYS("only like with like is merged, of one region, without a gap",
		     different_requests_do_not_merge),
		SAYS("messages are not merged", messages_stay_apart),
		SAYS("a merged WR is no longer than a fragment", a_merged_wr_has_its_bounds),
		SAYS("a merged WR has no more entries than the device takes",
		     a_device_with_few_entries_merges_fewer),
		SAYS("merging never crosses a conflict", a_conflict_is_not_crossed),
		SAYS("requests that wait for the window still merge",
		     requests_waiting_for_the_window_merge),
		SAYS("of a merged WR that is refused only the guilty one fails",
		     each_meets_its_own_fate),
		SAYS("a late request among merged ones takes only itself down",
		     a_late_request_fails_the_channel_of_its_wr),
	};
	size_t i;

	for (i = 0; i < NR(ways); i++)
		tests[SAID + i] = (struct CMUnitTest){ ways[i].sentence, batches, NULL, NULL,
						       (void *)&ways[i] };
	for (i = 0; i < NR(fates); i++)
		tests[SAID + NR(ways) + i] = (struct CMUnitTest){ fates[i].sentence, ends, NULL,
								  NULL, (void *)&fates[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
