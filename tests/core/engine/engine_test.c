/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: refused requests, and engines with a shared window. */
#include "tests/support/engine_bench.h"

struct refusal {
	const char *sentence;
	int expect;
	struct weir_req req;
};

#define SGE(n)                                           \
	{                                                \
		.addr = 0x1000, .length = (n), .lkey = 1 \
	}

static const struct refusal refusals[] = {
	{ "an unknown operation is refused", -EINVAL, { .op = 99 } },
	{ "an empty read is refused", -EINVAL, { .op = WEIR_OP_READ } },
	{ "a length that is not the sum of its pieces is refused",
	  -EINVAL,
	  { .op = WEIR_OP_READ, .length = 9, .nr_sge = 1, .sge = { SGE(8) } } },
	{ "a range that wraps is refused",
	  -EINVAL,
	  { .op = WEIR_OP_READ,
	    .remote = UINT64_MAX,
	    .length = 8,
	    .nr_sge = 1,
	    .sge = { SGE(8) } } },
	{ "a range up to the last address is taken",
	  0,
	  { .op = WEIR_OP_READ,
	    .remote = UINT64_MAX - 7,
	    .length = 8,
	    .nr_sge = 1,
	    .sge = { SGE(8) } } },
	{ "too many pieces are refused",
	  -EINVAL,
	  { .op = WEIR_OP_READ, .length = 8, .nr_sge = WEIR_SGE_MAX + 1, .sge = { SGE(8) } } },
	{ "an atomic of 4 bytes is refused",
	  -EINVAL,
	  { .op = WEIR_OP_FADD, .length = 4, .nr_sge = 1, .sge = { SGE(4) } } },
	{ "an atomic that is not aligned is refused",
	  -EINVAL,
	  { .op = WEIR_OP_CAS, .remote = 4, .length = 8, .nr_sge = 1, .sge = { SGE(8) } } },
	{ "an empty message is taken", 0, { .op = WEIR_OP_SEND } },
	{ "a message as long as a fragment is taken",
	  0,
	  { .op = WEIR_OP_SEND, .length = 4096, .nr_sge = 1, .sge = { SGE(4096) } } },
	{ "a message longer than a fragment is refused",
	  -EMSGSIZE,
	  { .op = WEIR_OP_SEND, .length = 4097, .nr_sge = 1, .sge = { SGE(4097) } } },
};

static void submits(void **state)
{
	const struct refusal *r = *state;
	struct engine_bench *b = bench_new(64 * KIB, 1);
	struct weir_req req = r->req;

	req.deadline_ns = WEIR_NEVER;
	assert_int_equal(weir_engine_submit(&b->engine, &req, 0), r->expect);
	bench_pull(b);
	bench_finish(b, 0);
	assert_int_equal(b->nr_done, r->expect == 0);
	bench_free(b);
}

static void refuses_settings(void **state)
{
	struct weir_engine_config config = { .fragment_bytes = WEIR_FRAGMENT_BYTES_MIN,
					     .chain_max = 1,
					     .sge_max = WEIR_SGE_MAX };
	struct weir_window w;
	struct weir_engine e;
	struct weir_wr wr;

	(void)state;
	weir_window_init(&w, 8 * KIB, 4);
	assert_int_equal(weir_engine_init(&e, &config, &w, &wr, 0), -EINVAL);
	assert_int_equal(weir_engine_init(&e, &config, &w, &wr, 1), 0);
	config.fragment_bytes = 8 * KIB;
	assert_int_equal(weir_engine_init(&e, &config, &w, &wr, 1), 0);
	config.fragment_bytes = 8 * KIB + 1;
	assert_int_equal(weir_engine_init(&e, &config, &w, &wr, 1), -EINVAL);
	config.fragment_bytes = WEIR_FRAGMENT_BYTES_MIN - 1;
	assert_int_equal(weir_engine_init(&e, &config, &w, &wr, 1), -EINVAL);
	config.fragment_bytes = WEIR_FRAGMENT_BYTES_MIN;
	config.chain_max = 0;
	assert_int_equal(weir_engine_init(&e, &config, &w, &wr, 1), -EINVAL);
	config.chain_max = WEIR_BATCH_MAX + 1;
	assert_int_equal(weir_engine_init(&e, &config, &w, &wr, 1), -EINVAL);
	config.chain_max = WEIR_BATCH_MAX;
	config.sge_max = WEIR_SGE_MAX - 1;
	assert_int_equal(weir_engine_init(&e, &config, &w, &wr, 1), -EINVAL);
	config.sge_max = WEIR_WR_SGE_MAX + 1;
	assert_int_equal(weir_engine_init(&e, &config, &w, &wr, 1), -EINVAL);
	assert_int_equal(weir_engine_channel_up(&e, WEIR_CHANNEL_MAX, 1), -EINVAL);
	assert_int_equal(weir_engine_channel_up(&e, 0, 0), -EINVAL);
}

/* Two engines on one window: @b starts with its own window and moves to @a's. */
static struct engine_bench *bench_share(struct engine_bench *a)
{
	struct engine_bench *b = bench_new(a->window.bytes_max, 1);

	b->engine.window = &a->window;
	return b;
}

static void the_other_is_woken(void **state)
{
	struct engine_bench *a = bench_new(4 * KIB, 1), *b = bench_share(a);
	struct weir_req first = bench_req(WEIR_OP_READ, 0, 4 * KIB);
	struct weir_req second = bench_req(WEIR_OP_READ, 0, 8);

	(void)state;
	bench_submit(a, &first);
	bench_submit(b, &second);
	assert_int_equal(b->nr_posted, 0);
	bench_complete(a, 0, 0);
	assert_int_equal(a->nr_woken, 1);
	assert_ptr_equal(a->woken[0], &b->engine);
	bench_pull(b);
	assert_int_equal(b->nr_posted, 1);
	bench_complete(b, 0, 0);
	bench_free(b);
	bench_free(a);
}

static void the_other_has_its_turn_first(void **state)
{
	struct engine_bench *a = bench_new(4 * KIB, 1), *b = bench_share(a);
	struct weir_req mine = bench_req(WEIR_OP_READ, 0, 16 * KIB);
	struct weir_req its = bench_req(WEIR_OP_READ, 0, 4 * KIB);

	(void)state;
	bench_submit(a, &mine);
	bench_submit(b, &its);
	bench_complete(a, 0, 0);
	assert_int_equal(a->nr_posted, 2);
	bench_complete(a, 1, 0);
	assert_int_equal(a->nr_posted, 2);
	assert_int_equal(a->nr_woken, 1);
	bench_pull(b);
	assert_int_equal(b->nr_posted, 1);
	bench_complete(b, 0, 0);
	assert_ptr_equal(b->woken[0], &a->engine);
	bench_pull(a);
	bench_finish(a, 2);
	assert_int_equal(a->nr_done, 1);
	bench_free(b);
	bench_free(a);
}

static void a_session_without_requests_passes_its_turn_on(void **state)
{
	struct engine_bench *a = bench_new(4 * KIB, 1), *b = bench_share(a), *c = bench_share(a);
	struct weir_req req[3] = { bench_req(WEIR_OP_READ, 0, 4 * KIB),
				   bench_req(WEIR_OP_READ, 0, 8), bench_req(WEIR_OP_READ, 0, 8) };

	(void)state;
	bench_submit(a, &req[0]);
	bench_submit(b, &req[1]);
	bench_submit(c, &req[2]);
	bench_complete(a, 0, 0);
	assert_ptr_equal(a->woken[0], &b->engine);
	assert_int_equal(weir_engine_cancel(&b->engine, &req[1]), 0);
	bench_pull(b);
	assert_ptr_equal(b->woken[0], &c->engine);
	bench_pull(c);
	assert_int_equal(c->nr_posted, 1);
	bench_finish(c, 0);
	bench_free(c);
	bench_free(b);
	bench_free(a);
}

#define NR_REFUSALS (sizeof(refusals) / sizeof(*refusals))

int main(void)
{
	struct CMUnitTest tests[NR_REFUSALS + 4] = {
		SAYS("settings that cannot work are refused", refuses_settings),
		SAYS("when bytes come back the session that waits is woken", the_other_is_woken),
		SAYS("a session that has waited goes before the one just served",
		     the_other_has_its_turn_first),
		SAYS("a session without requests passes its turn on",
		     a_session_without_requests_passes_its_turn_on),
	};
	size_t i;

	for (i = 0; i < NR_REFUSALS; i++)
		tests[i + 4] = (struct CMUnitTest){ refusals[i].sentence, submits, NULL, NULL,
						    (void *)&refusals[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
