/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: requests too long to merge are chained, and never wait for neighbours. */
#include "core/engine/merge.h"
#include "tests/support/engine_bench.h"

#define LONG (2 * WEIR_MERGE_REQ_BYTES_MAX)

static const struct weir_engine_config hybrid = { .fragment_bytes = 1024 * KIB,
						  .chain_max = WEIR_BATCH_MAX,
						  .sge_max = WEIR_WR_SGE_MAX,
						  .merge = true };

/* Submit without a pull, as a host that pulls later does. */
static void gather(struct engine_bench *b, struct weir_req *req)
{
	assert_int_equal(weir_engine_submit(&b->engine, req, 0), 0);
}

/* The requests are adjacent, and just short enough to be worth merging or one byte too long. */
static void long_requests_are_not_merged(void **state)
{
	static const struct {
		uint32_t first, second;
		unsigned int wrs;
	} cases[] = {
		{ WEIR_MERGE_REQ_BYTES_MAX - 1, WEIR_MERGE_REQ_BYTES_MAX - 1, 1 },
		{ WEIR_MERGE_REQ_BYTES_MAX, 4 * KIB, 2 },
		{ 4 * KIB, WEIR_MERGE_REQ_BYTES_MAX, 2 },
		{ LONG, LONG, 2 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct engine_bench *b = bench_new_with(&hybrid, 4096 * KIB, 1);
		struct weir_req req[2] = {
			bench_req(WEIR_OP_READ, 0, cases[i].first),
			bench_req(WEIR_OP_READ, cases[i].first, cases[i].second),
		};

		gather(b, &req[0]);
		gather(b, &req[1]);
		bench_pull(b);
		assert_int_equal(b->nr_posted, cases[i].wrs);
		assert_int_equal(b->nr_batches, 1);
		bench_finish(b, 0);
		assert_int_equal(b->nr_done, 2);
		bench_free(b);
	}
}

/* A long request would merge with nothing, and need not wait. */
static void long_requests_do_not_gather(void **state)
{
	static struct weir_req req[WEIR_STREAM_WRS + 4];
	struct engine_bench *b = bench_new_with(&hybrid, 64 * 1024 * KIB, 2);
	unsigned int i;

	(void)state;
	for (i = 0; i < WEIR_STREAM_WRS + 4; i++) {
		req[i] = bench_req(WEIR_OP_WRITE, (uint64_t)i * LONG, LONG);
		gather(b, &req[i]);
		bench_pull(b);
	}
	assert_int_equal(b->nr_posted, WEIR_STREAM_WRS + 4);
	bench_finish(b, 0);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("long requests are chained, not merged", long_requests_are_not_merged),
		SAYS("a request too long to merge does not wait for a stream",
		     long_requests_do_not_gather),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
