/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: WRs on the unload channel, and no effect on the rest. */
#include "tests/support/engine_bench.h"

#define PLAIN 0
#define UNLOAD 1
#define SLOTS 4
#define SMALL 64

struct unload_fixture {
	struct engine_bench *bench;
	struct weir_path_selector selector;
};

static struct unload_fixture fixture_new(bool merge)
{
	const struct weir_engine_config config = { .fragment_bytes = 4 * KIB,
						   .chain_max = WEIR_BATCH_MAX,
						   .sge_max = WEIR_SGE_MAX,
						   .merge = merge };
	struct unload_fixture f = { .bench = bench_new_with(&config, 64 * KIB, 1) };

	return f;
}

/* @f->selector must not move. */
static void fixture_begin(struct unload_fixture *f, enum weir_path_policy policy)
{
	struct weir_path_config config = { .policy = policy,
					   .bytes_max = SMALL,
					   .hot_pages = 1,
					   .nr_counters = WEIR_PATH_COUNTERS_MIN };
	static uint8_t counters[WEIR_PATH_BYTES(WEIR_PATH_COUNTERS_MIN)]
		__attribute__((aligned(8)));

	memset(counters, 0, sizeof(counters));
	assert_int_equal(weir_path_init(&f->selector, &config, counters), 0);
	weir_engine_unload(&f->bench->engine, &f->selector, UNLOAD);
	assert_int_equal(weir_engine_channel_up(&f->bench->engine, UNLOAD, SLOTS), 0);
}

static void only_small_whole_writes_are_unloaded(void **state)
{
	static const struct {
		enum weir_op op;
		uint32_t length;
		uint16_t channel;
	} cases[] = {
		{ WEIR_OP_WRITE, SMALL, UNLOAD },    { WEIR_OP_WRITE, 1, UNLOAD },
		{ WEIR_OP_WRITE, SMALL + 1, PLAIN }, { WEIR_OP_READ, SMALL, PLAIN },
		{ WEIR_OP_FADD, 8, PLAIN },	     { WEIR_OP_CAS, 8, PLAIN },
		{ WEIR_OP_SEND, SMALL, PLAIN },
	};
	struct unload_fixture f = fixture_new(false);
	size_t i;

	(void)state;
	fixture_begin(&f, WEIR_PATH_POLICY_UNLOAD);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct weir_req req = bench_req(cases[i].op, 4096 * i, cases[i].length);

		bench_submit(f.bench, &req);
		assert_int_equal(f.bench->posted[i]->channel, cases[i].channel);
		bench_complete(f.bench, (unsigned int)i, 0);
		assert_int_equal(req.status, 0);
	}
	bench_free(f.bench);
}

static void the_rest_of_a_cut_write_is_not_small(void **state)
{
	struct unload_fixture f = fixture_new(false);
	struct weir_req req = bench_req(WEIR_OP_WRITE, 0, 4 * KIB + 1);

	(void)state;
	fixture_begin(&f, WEIR_PATH_POLICY_UNLOAD);
	bench_submit(f.bench, &req);
	assert_int_equal(f.bench->nr_posted, 2);
	assert_int_equal(f.bench->posted[1]->length, 1);
	assert_int_equal(f.bench->posted[1]->channel, PLAIN);
	bench_finish(f.bench, 0);
	bench_free(f.bench);
}

static void a_merged_write_is_unloaded_only_if_small(void **state)
{
	struct unload_fixture f = fixture_new(true);
	struct weir_req req[4];
	unsigned int i;

	(void)state;
	fixture_begin(&f, WEIR_PATH_POLICY_UNLOAD);
	for (i = 0; i < 4; i++) /* merged in pairs: 32 bytes each, then 64 */
		req[i] = bench_req(WEIR_OP_WRITE, i < 2 ? i * 32 : 8192 + i * 64, i < 2 ? 32 : 64);
	for (i = 0; i < 4; i++)
		assert_int_equal(weir_engine_submit(&f.bench->engine, &req[i], 0), 0);
	bench_pull(f.bench);
	assert_int_equal(f.bench->nr_posted, 2);
	assert_int_equal(f.bench->posted[0]->channel, UNLOAD);
	assert_int_equal(f.bench->posted[0]->nr_reqs, 2);
	assert_int_equal(f.bench->posted[1]->channel, PLAIN);
	assert_int_equal(f.bench->posted[1]->nr_reqs, 2);
	bench_finish(f.bench, 0);
	bench_free(f.bench);
}

static void with_the_buffer_full_all_is_offloaded_at_once(void **state)
{
	struct unload_fixture f = fixture_new(false);
	struct weir_req req[SLOTS + 2];
	unsigned int i;

	(void)state;
	fixture_begin(&f, WEIR_PATH_POLICY_UNLOAD);
	for (i = 0; i < SLOTS + 2; i++)
		req[i] = bench_req(WEIR_OP_WRITE, 4096ull * i, 8);
	for (i = 0; i < SLOTS + 1; i++)
		assert_int_equal(weir_engine_submit(&f.bench->engine, &req[i], 0), 0);
	bench_pull(f.bench);
	assert_int_equal(f.bench->nr_posted, SLOTS + 1);
	for (i = 0; i < SLOTS; i++)
		assert_int_equal(f.bench->posted[i]->channel, UNLOAD);
	assert_int_equal(f.bench->posted[SLOTS]->channel, PLAIN);
	bench_submit(f.bench, &req[SLOTS + 1]); /* a single request too */
	assert_int_equal(f.bench->posted[SLOTS + 1]->channel, PLAIN);
	assert_int_equal(f.bench->engine.unload_full, 2);
	bench_finish(f.bench, 0);
	bench_free(f.bench);
}

static void an_overlapping_write_waits_for_the_other_path(void **state)
{
	struct unload_fixture f = fixture_new(false);
	struct weir_req small = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req large = bench_req(WEIR_OP_WRITE, 0, 4 * KIB);
	struct weir_req read = bench_req(WEIR_OP_READ, 4, 8);

	(void)state;
	fixture_begin(&f, WEIR_PATH_POLICY_UNLOAD);
	bench_submit(f.bench, &small);
	bench_submit(f.bench, &large);
	bench_submit(f.bench, &read);
	assert_int_equal(f.bench->nr_posted, 1);
	bench_complete(f.bench, 0, 0);
	assert_int_equal(f.bench->nr_posted, 2);
	assert_ptr_equal(f.bench->posted[1]->req, &large);
	bench_complete(f.bench, 1, 0);
	assert_int_equal(f.bench->nr_posted, 3);
	bench_finish(f.bench, 2);
	bench_free(f.bench);
}

static void one_that_is_refused_ends_so(void **state)
{
	struct unload_fixture f = fixture_new(false);
	struct weir_req bad = bench_req(WEIR_OP_WRITE, 0, 8);
	struct weir_req behind = bench_req(WEIR_OP_WRITE, 4096, 8);

	(void)state;
	behind.exclusive = true;
	behind.retries = 1;
	fixture_begin(&f, WEIR_PATH_POLICY_UNLOAD);
	bench_submit(f.bench, &bad);
	bench_submit(f.bench, &behind);
	bench_complete(f.bench, 0, -EACCES);
	assert_int_equal(f.bench->nr_failed, 1);
	assert_int_equal(f.bench->failed[0], UNLOAD);
	assert_int_equal(bad.status, -EACCES);
	assert_int_equal(bad.state, WEIR_REQ_DONE);
	bench_complete(f.bench, 1, -ECONNRESET); /* flushed: the target may still copy the data */
	assert_int_equal(f.bench->nr_posted, 2);
	assert_int_equal(f.bench->nr_done, 1);
	weir_engine_channel_down(&f.bench->engine, UNLOAD); /* the donor has released the buffer */
	bench_pull(f.bench);
	assert_int_equal(behind.status, -ECONNRESET);
	bench_free(f.bench);
}

static void without_the_channel_all_is_offloaded(void **state)
{
	struct unload_fixture f = fixture_new(false);
	struct weir_req req[2] = { bench_req(WEIR_OP_WRITE, 0, 8),
				   bench_req(WEIR_OP_WRITE, 4096, 8) };

	(void)state;
	fixture_begin(&f, WEIR_PATH_POLICY_UNLOAD);
	weir_engine_channel_broken(&f.bench->engine, UNLOAD);
	bench_submit(f.bench, &req[0]);
	assert_int_equal(f.bench->posted[0]->channel, PLAIN);
	assert_int_equal(weir_engine_channel_up(&f.bench->engine, UNLOAD, SLOTS), 0);
	bench_submit(f.bench, &req[1]);
	assert_int_equal(f.bench->posted[1]->channel, UNLOAD);
	bench_finish(f.bench, 0);
	bench_free(f.bench);
}

static void it_is_no_channel_for_others(void **state)
{
	struct unload_fixture f = fixture_new(false);
	struct weir_req read = bench_req(WEIR_OP_READ, 0, 8);

	(void)state;
	fixture_begin(&f, WEIR_PATH_POLICY_UNLOAD);
	bench_give_up(f.bench, PLAIN);
	assert_int_equal(weir_engine_submit(&f.bench->engine, &read, 0), -ENOTCONN);
	bench_free(f.bench);
}

static void the_measured_policy_learns_from_completions(void **state)
{
	struct unload_fixture f = fixture_new(false);
	struct weir_req req;
	unsigned int i;

	(void)state;
	fixture_begin(&f, WEIR_PATH_POLICY_MEASURED);
	for (i = 0; i < WEIR_PATH_PROBES; i++) {
		struct weir_wc wc = { .status = 0 };
		uint64_t now_ns = 100000ull * (i + 1);

		req = bench_req(WEIR_OP_WRITE, 0, 8);
		req.hint = WEIR_PATH_HINT_COLD;
		assert_int_equal(weir_engine_submit(&f.bench->engine, &req, now_ns), 0);
		bench_pull(f.bench);
		wc.wr = f.bench->posted[i];
		weir_engine_completed(&f.bench->engine, &wc,
				      now_ns + (wc.wr->channel == UNLOAD ? 3500 : 5100));
		bench_pull(f.bench);
	}
	assert_int_equal(f.selector.trial.trials, 1);
	assert_true(f.selector.trial.pays);
	bench_free(f.bench);
}

/* If one were still waited for, the trial would never end. */
static void a_probe_without_room_is_given_up(void **state)
{
	struct unload_fixture f = fixture_new(false);
	struct weir_req *req = calloc(WEIR_PATH_PROBES, sizeof(*req)); /* too large for a stack */
	unsigned int i;

	(void)state;
	fixture_begin(&f, WEIR_PATH_POLICY_MEASURED);
	for (i = 0; i < WEIR_PATH_PROBES; i++) {
		req[i] = bench_req(WEIR_OP_WRITE, 4096ull * i, 8);
		req[i].hint = WEIR_PATH_HINT_COLD;
		assert_int_equal(weir_engine_submit(&f.bench->engine, &req[i], 0), 0);
	}
	bench_pull(f.bench);
	assert_in_range(f.bench->engine.unload_full, 1, WEIR_PATH_PROBES / 2);
	bench_finish(f.bench, 0);
	assert_int_equal(f.bench->nr_done, WEIR_PATH_PROBES);
	assert_int_equal(f.selector.trial.trials, 1);
	bench_free(f.bench);
	free(req);
}

/* The trial ends only if each probe is measured or given up. */
static void probes_end(struct unload_fixture *f)
{
	struct weir_req *req = calloc(2 * WEIR_PATH_PROBES, sizeof(*req));
	unsigned int i, done = 0;

	assert_non_null(req);
	for (i = 0; i < 2 * WEIR_PATH_PROBES; i++) {
		req[i] = bench_req(WEIR_OP_WRITE, 4096ull * i, 8);
		req[i].hint = WEIR_PATH_HINT_COLD;
		assert_int_equal(weir_engine_submit(&f->bench->engine, &req[i], 0), 0);
		if (i % 8 != 7)
			continue;
		bench_pull(f->bench);
		bench_finish(f->bench, done);
		done = f->bench->nr_posted;
	}
	assert_int_equal(f->bench->nr_done, 2 * WEIR_PATH_PROBES);
	assert_int_equal(f->selector.trial.trials, 1);
	assert_int_equal(f->selector.trial.out, 0);
	bench_free(f->bench);
	free(req);
}

/* A chain has writes of one path: the first of the other path ends it, and is decided again. */
static void a_probe_of_the_other_path_is_given_up(void **state)
{
	struct unload_fixture f = fixture_new(false);

	(void)state;
	fixture_begin(&f, WEIR_PATH_POLICY_MEASURED);
	probes_end(&f);
}

static void a_probe_that_the_window_refuses_is_given_up(void **state)
{
	struct unload_fixture f = fixture_new(false);

	(void)state;
	f.bench->window.wrs_max = f.bench->window.wrs_top = f.bench->window.wrs_min = 3;
	fixture_begin(&f, WEIR_PATH_POLICY_MEASURED);
	probes_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("only small whole writes are unloaded", only_small_whole_writes_are_unloaded),
		SAYS("the rest of a cut write is not small", the_rest_of_a_cut_write_is_not_small),
		SAYS("a merged write is unloaded only if it is small",
		     a_merged_write_is_unloaded_only_if_small),
		SAYS("with the buffer full all is offloaded, at once",
		     with_the_buffer_full_all_is_offloaded_at_once),
		SAYS("an overlapping write waits for the other path",
		     an_overlapping_write_waits_for_the_other_path),
		SAYS("one that is refused ends so", one_that_is_refused_ends_so),
		SAYS("without the channel all is offloaded", without_the_channel_all_is_offloaded),
		SAYS("it is no channel for others", it_is_no_channel_for_others),
		SAYS("the measured policy learns from completions",
		     the_measured_policy_learns_from_completions),
		SAYS("a probe without room is given up", a_probe_without_room_is_given_up),
		SAYS("a probe of the other path is given up",
		     a_probe_of_the_other_path_is_given_up),
		SAYS("a probe that the window refuses is given up",
		     a_probe_that_the_window_refuses_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
