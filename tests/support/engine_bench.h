/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A host for one engine in unit tests. It records the engine's actions; the test decides when
 * completions come.
 */
#ifndef WEIR_TESTS_SUPPORT_ENGINE_BENCH_H
#define WEIR_TESTS_SUPPORT_ENGINE_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/engine/engine.h"

#define BENCH_WRS 128
#define BENCH_LOG 512
#define KIB 1024u

/* A test named by a sentence. */
#define SAYS(sentence, function)                         \
	{                                                \
		(sentence), (function), NULL, NULL, NULL \
	}

struct engine_bench_batch {
	uint16_t channel;
	uint16_t count;
};

struct engine_bench {
	struct weir_window window;
	struct weir_engine engine;
	struct weir_wr wrs[BENCH_WRS];

	/* The engine's actions, in order. */
	struct weir_wr *posted[BENCH_LOG];
	struct engine_bench_batch batches[BENCH_LOG];
	struct weir_req *done[BENCH_LOG];
	uint16_t failed[BENCH_LOG];
	struct weir_engine *woken[BENCH_LOG];
	unsigned int nr_posted, nr_batches, nr_done, nr_failed, nr_woken;
};

static inline void bench_log_post(struct engine_bench *b, const struct weir_action *a)
{
	struct weir_wr *wr = a->wr;
	uint16_t count = 0;

	for (; wr; wr = wr->next, count++) {
		assert_int_equal(wr->channel, a->channel);
		b->posted[b->nr_posted++] = wr;
	}
	assert_int_equal(count, a->count);
	b->batches[b->nr_batches++] = (struct engine_bench_batch){ a->channel, a->count };
}

/* Carry out actions until the engine has no more. */
static inline void bench_pull(struct engine_bench *b)
{
	struct weir_action a;

	while (weir_engine_next(&b->engine, &a)) {
		switch (a.type) {
		case WEIR_ACTION_POST:
			bench_log_post(b, &a);
			break;
		case WEIR_ACTION_DONE:
			b->done[b->nr_done++] = a.req;
			break;
		case WEIR_ACTION_WAKE:
			b->woken[b->nr_woken++] = a.engine;
			break;
		case WEIR_ACTION_FAIL:
			b->failed[b->nr_failed++] = a.channel;
			break;
		}
	}
}

/* An engine with a window of @window bytes and @channels channels. */
static inline struct engine_bench *bench_new_with(const struct weir_engine_config *config,
						  uint64_t window, uint16_t channels)
{
	struct engine_bench *b = calloc(1, sizeof(*b));
	uint16_t i;

	assert_non_null(b);
	assert_int_equal(weir_window_init(&b->window, window, 1000), 0);
	assert_int_equal(weir_engine_init(&b->engine, config, &b->window, b->wrs, BENCH_WRS), 0);
	for (i = 0; i < channels; i++)
		assert_int_equal(weir_engine_channel_up(&b->engine, i, 64), 0);
	return b;
}

/* An engine with fragments of 4 KiB that chains and does not merge. */
static inline struct engine_bench *bench_new(uint64_t window, uint16_t channels)
{
	static const struct weir_engine_config config = { .fragment_bytes = 4 * KIB,
							  .chain_max = WEIR_BATCH_MAX,
							  .sge_max = WEIR_SGE_MAX };

	return bench_new_with(&config, window, channels);
}

/* End a test: everything in flight must have been given back. */
static inline void bench_free(struct engine_bench *b)
{
	assert_int_equal(b->window.bytes, 0);
	assert_int_equal(b->window.wrs, 0);
	assert_true(weir_list_is_empty(&b->window.waiters));
	assert_int_equal(weir_engine_deadline_ns(&b->engine), WEIR_NEVER);
	free(b);
}

static inline struct weir_req bench_req(enum weir_op op, uint64_t remote, uint32_t length)
{
	return (struct weir_req){
		.op = op,
		.remote = remote,
		.length = length,
		.deadline_ns = WEIR_NEVER,
		.nr_sge = 1,
		.sge = { { .addr = 0x10000, .length = length, .lkey = 7 } },
	};
}

static inline void bench_submit(struct engine_bench *b, struct weir_req *req)
{
	assert_int_equal(weir_engine_submit(&b->engine, req, 0), 0);
	bench_pull(b);
}

/* WR number @i completes; actions wait for a pull. */
static inline void bench_complete_only(struct engine_bench *b, unsigned int i, int status)
{
	struct weir_wc wc = { .wr = b->posted[i], .status = status };

	assert_true(i < b->nr_posted);
	weir_engine_completed(&b->engine, &wc, 0);
}

static inline void bench_complete(struct engine_bench *b, unsigned int i, int status)
{
	bench_complete_only(b, i, status);
	bench_pull(b);
}

/* The host gives a channel up: nothing sent on it can arrive any more. */
static inline void bench_give_up(struct engine_bench *b, uint16_t channel)
{
	weir_engine_channel_down(&b->engine, channel);
	bench_pull(b);
}

/* Complete everything from WR number @from on, until the engine posts nothing more. */
static inline void bench_finish(struct engine_bench *b, unsigned int from)
{
	for (; from < b->nr_posted; from++)
		bench_complete(b, from, 0);
}

#endif
