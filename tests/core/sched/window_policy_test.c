/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Learners of a window on a synthetic NIC in virtual time: a queue served at a fixed rate, and a
 * wire. A window of rate times delay, the knee, fills the wire; a larger window only adds
 * delay. Beyond a further limit the NIC thrashes and slows down (RDMAbox, figure 1).
 */
#include "core/sched/window_delay.h"
#include "core/sched/window_knee.h"
#include "tests/support/engine_bench.h"

#define SOURCES_MAX 4
#define FRAGMENT (16 * KIB)
#define TOP (4096ull * KIB)
#define TOP_WRS (TOP / FRAGMENT)
#define QUEUE 4096
#define NS_MS 1000000ull

struct flight {
	uint64_t posted_ns, done_ns;
	int source;
};

/* A process on the NIC with endless data. */
struct policy_source {
	struct weir_window window;
	struct weir_window_waiter waiter;
	struct weir_window_delay delay;
	struct weir_window_knee knee;
	uint64_t bytes; /* completed */
};

struct policy_nic {
	uint64_t bytes_per_us;
	uint64_t wire_ns;
	/* above this the NIC slows down in proportion to the bytes in flight */
	uint64_t thrash_bytes;
	uint64_t now_ns, free_ns, last_ns;
	uint64_t in_flight;
	uint32_t dice;
	struct flight flight[QUEUE];
	unsigned int head, tail;
	struct policy_source source[SOURCES_MAX];
	int nr_sources;
};

enum policy_kind { DELAY, KNEE, DELAY_WRS, KNEE_WRS };

static void source_init(struct policy_source *s, enum policy_kind kind)
{
	bool is_of_wrs = kind == DELAY_WRS || kind == KNEE_WRS;
	enum weir_window_unit unit = is_of_wrs ? WEIR_WINDOW_WRS : WEIR_WINDOW_BYTES;
	struct weir_window_bounds least = { FRAGMENT, QUEUE / SOURCES_MAX };
	struct weir_window_learner *learner = &s->knee.learner;

	if (is_of_wrs)
		least = (struct weir_window_bounds){ UINT64_MAX, kind == KNEE_WRS ? 4 : 1 };
	if (kind == DELAY || kind == DELAY_WRS)
		learner = &s->delay.learner;
	weir_window_delay_init(&s->delay, unit);
	weir_window_knee_init(&s->knee, unit);
	weir_window_waiter_init(&s->waiter);
	assert_int_equal(weir_window_init(&s->window, is_of_wrs ? UINT64_MAX : TOP,
					  is_of_wrs ? TOP_WRS : QUEUE / SOURCES_MAX),
			 0);
	assert_int_equal(weir_window_set_learner(&s->window, learner, &least), 0);
}

/* Of the limit that is learned, in bytes. */
static uint64_t limit_of(const struct policy_source *s)
{
	return s->window.bytes_top == UINT64_MAX ? s->window.wrs_max * (uint64_t)FRAGMENT :
						   s->window.bytes_max;
}

/* 10 GB/s over 50 us: the knee is at 500 KB. */
static struct policy_nic *nic_new(enum policy_kind kind, int sources)
{
	struct policy_nic *n = calloc(1, sizeof(*n));
	int i;

	assert_non_null(n);
	n->bytes_per_us = 10000;
	n->wire_ns = 50000;
	n->thrash_bytes = UINT64_MAX;
	n->nr_sources = sources;
	for (i = 0; i < sources; i++)
		source_init(&n->source[i], kind);
	return n;
}

static uint64_t knee_of(const struct policy_nic *n)
{
	return n->bytes_per_us * n->wire_ns / 1000;
}

/* Up to a tenth of the wire's delay, against lockstep. */
static uint64_t jitter_ns(struct policy_nic *n)
{
	n->dice = n->dice * 1664525 + 1013904223;
	return (n->dice >> 16) * (n->wire_ns / 10) / 65536;
}

static void nic_post(struct policy_nic *n, int source)
{
	struct flight *f = &n->flight[n->tail++ % QUEUE];
	uint64_t serve_ns = FRAGMENT * 1000ull / n->bytes_per_us;

	n->in_flight += FRAGMENT;
	if (n->in_flight > n->thrash_bytes)
		serve_ns = serve_ns * n->in_flight / n->thrash_bytes;
	n->free_ns = (n->free_ns > n->now_ns ? n->free_ns : n->now_ns) + serve_ns;
	f->source = source;
	f->posted_ns = n->now_ns;
	f->done_ns = n->free_ns + n->wire_ns + jitter_ns(n);
	if (f->done_ns < n->last_ns)
		f->done_ns = n->last_ns;
	n->last_ns = f->done_ns;
}

/* Sources take turns, so no source gets more than its window allows. */
static void nic_fill(struct policy_nic *n)
{
	bool any;
	int i;

	do {
		any = false;
		for (i = 0; i < n->nr_sources; i++) {
			struct policy_source *s = &n->source[i];

			if (weir_window_take(&s->window, &s->waiter, FRAGMENT))
				continue;
			any = true;
			nic_post(n, i);
		}
	} while (any);
}

static void nic_complete(struct policy_nic *n)
{
	struct flight *f = &n->flight[n->head++ % QUEUE];
	struct policy_source *s = &n->source[f->source];

	n->now_ns = f->done_ns;
	n->in_flight -= FRAGMENT;
	s->bytes += FRAGMENT;
	weir_window_tick(&s->window, n->now_ns);
	weir_window_completed(&s->window, FRAGMENT, f->posted_ns);
	weir_window_give(&s->window, FRAGMENT);
	assert_in_range(limit_of(s), FRAGMENT, TOP);
}

static void nic_run(struct policy_nic *n, uint64_t ms)
{
	uint64_t until_ns = n->now_ns + ms * NS_MS;
	int i;

	for (i = 0; i < n->nr_sources; i++)
		n->source[i].bytes = 0;
	nic_fill(n);
	while (n->now_ns < until_ns) {
		nic_complete(n);
		nic_fill(n);
	}
}

/* The rate reached over @ms, in percent of the NIC's rate. */
static uint64_t percent_of_rate(struct policy_nic *n, uint64_t ms)
{
	uint64_t bytes = 0;
	int i;

	nic_run(n, ms);
	for (i = 0; i < n->nr_sources; i++)
		bytes += n->source[i].bytes;
	return bytes * 100 / (n->bytes_per_us * 1000 * ms);
}

static void assert_fills(struct policy_nic *n, uint64_t ms)
{
	nic_run(n, ms);
	assert_in_range(percent_of_rate(n, ms), 93, 101);
	assert_in_range(limit_of(&n->source[0]) * 100 / knee_of(n), 80, 250);
}

static void finds_the_knee(void **state)
{
	struct policy_nic *n = nic_new(*(const enum policy_kind *)*state, 1);

	assert_fills(n, 50);
	free(n);
}

static void follows_the_rate(void **state)
{
	struct policy_nic *n = nic_new(*(const enum policy_kind *)*state, 1);

	assert_fills(n, 50);
	n->bytes_per_us /= 4;
	assert_fills(n, 100);
	n->bytes_per_us *= 4;
	assert_fills(n, 100);
	free(n);
}

static void follows_the_delay(void **state)
{
	struct policy_nic *n = nic_new(*(const enum policy_kind *)*state, 1);

	assert_fills(n, 50);
	n->wire_ns *= 4;
	assert_fills(n, 500);
	n->wire_ns /= 4;
	assert_fills(n, 500);
	free(n);
}

/* A window held at the maximum yields a sixth of the rate. */
static void does_not_thrash(void **state)
{
	struct policy_nic *n = nic_new(*(const enum policy_kind *)*state, 1);

	n->thrash_bytes = knee_of(n) * 5 / 4;
	nic_run(n, 50);
	assert_in_range(percent_of_rate(n, 50), 85, 101);
	n->source[0].window.learner = NULL;
	n->source[0].window.bytes_max = TOP;
	n->source[0].window.wrs_max = TOP_WRS;
	nic_run(n, 50);
	assert_in_range(percent_of_rate(n, 50), 10, 20);
	free(n);
}

/* Three processes join after the first has found the knee alone. */
static void shares_fairly(void **state)
{
	struct policy_nic *n = nic_new(*(const enum policy_kind *)*state, SOURCES_MAX);
	int i;

	n->nr_sources = 1;
	nic_run(n, 100);
	n->nr_sources = SOURCES_MAX;
	nic_run(n, 1000);
	assert_in_range(percent_of_rate(n, 1000), 93, 101);
	for (i = 0; i < SOURCES_MAX; i++)
		assert_in_range(n->source[i].bytes * 100 / (n->bytes_per_us * 1000000), 18, 32);
	free(n);
}

/* While nothing changes, trials become rare: their rounds cost some of the rate. */
static void rests_between_trials(void **state)
{
	struct policy_nic *n = nic_new(*(const enum policy_kind *)*state, 1);
	unsigned int i, holds = 0;

	nic_run(n, 300);
	for (i = 0; i < 200000; i++) {
		nic_complete(n);
		nic_fill(n);
		holds += n->source[0].knee.state == WEIR_KNEE_HOLD;
	}
	assert_in_range(holds, 200000 / 10 * 8, 200000);
	free(n);
}

/* The other limit lets a single work request through. */
static void does_not_grow_unfilled(void **state)
{
	struct policy_nic *n = nic_new(*(const enum policy_kind *)*state, 1);
	struct weir_window *w = &n->source[0].window;

	if (w->bytes_top == UINT64_MAX)
		w->bytes_min = w->bytes_top = w->bytes_max = FRAGMENT;
	else
		w->wrs_min = w->wrs_top = w->wrs_max = 1;
	nic_run(n, 100);
	assert_in_range(w->bytes_top == FRAGMENT ? w->wrs_max * (uint64_t)FRAGMENT : w->bytes_max,
			FRAGMENT, 5 * FRAGMENT);
	free(n);
}

/* A user-defined learner that ignores all bounds. */
struct wild {
	struct weir_window_learner learner;
	struct weir_window_bounds says;
	struct weir_window_success heard;
};

static void wild_completed(struct weir_window_learner *learner, const struct weir_window *w,
			   const struct weir_window_success *success,
			   struct weir_window_bounds *limits)
{
	struct wild *wild = container_of(learner, struct wild, learner);

	assert_int_equal(limits->bytes, w->bytes_max);
	assert_int_equal(limits->wrs, w->wrs_max);
	wild->heard = *success;
	*limits = wild->says;
}

static int set_least(struct weir_window *w, struct wild *wild, uint64_t bytes, uint32_t wrs)
{
	const struct weir_window_bounds least = { bytes, wrs };

	return weir_window_set_learner(w, &wild->learner, &least);
}

static void the_bounds_hold(void **state)
{
	struct wild wild = { .learner.completed = wild_completed };
	struct weir_window_waiter waiter;
	struct weir_window w;

	(void)state;
	weir_window_waiter_init(&waiter);
	assert_int_equal(weir_window_init(&w, 100 * KIB, 9), 0);
	assert_int_equal(set_least(&w, &wild, 0, 2), -EINVAL);
	assert_int_equal(set_least(&w, &wild, 100 * KIB + 1, 2), -EINVAL);
	assert_int_equal(set_least(&w, &wild, 10 * KIB, 0), -EINVAL);
	assert_int_equal(set_least(&w, &wild, 10 * KIB, 10), -EINVAL);
	assert_int_equal(set_least(&w, &wild, 100 * KIB, 9), 0);
	assert_int_equal(set_least(&w, &wild, 10 * KIB, 2), 0);
	assert_int_equal(w.bytes_max, 10 * KIB);
	assert_int_equal(w.wrs_max, 2);
	assert_int_equal(weir_window_take(&w, &waiter, 10 * KIB + 1), -EMSGSIZE);
	wild.says = (struct weir_window_bounds){ UINT64_MAX, UINT32_MAX };
	weir_window_completed(&w, 1, 0);
	assert_int_equal(w.bytes_max, 100 * KIB);
	assert_int_equal(w.wrs_max, 9);
	wild.says = (struct weir_window_bounds){ 0, 0 };
	weir_window_completed(&w, 1, 0);
	assert_int_equal(w.bytes_max, 10 * KIB);
	assert_int_equal(w.wrs_max, 2);
}

/*
 * The policy hears of each success once, with its time and the bytes in flight, and never of a
 * failure.
 */
static void successes_are_heard_of(void **state)
{
	static const struct weir_engine_config config = { .fragment_bytes = 4 * KIB,
							  .chain_max = WEIR_BATCH_MAX,
							  .sge_max = WEIR_SGE_MAX };
	struct weir_req req[2] = { bench_req(WEIR_OP_WRITE, 0, 8), bench_req(WEIR_OP_WRITE, 8, 9) };
	struct wild wild = { .learner.completed = wild_completed, .says = { 64 * KIB, 7 } };
	struct engine_bench *b = bench_new_with(&config, 64 * KIB, 1);
	struct weir_wc wc;

	(void)state;
	assert_int_equal(set_least(&b->window, &wild, 4 * KIB, 2), 0);
	assert_int_equal(weir_engine_submit(&b->engine, &req[0], 100), 0);
	bench_pull(b);
	assert_int_equal(weir_engine_submit(&b->engine, &req[1], 200), 0);
	bench_pull(b);
	wc = (struct weir_wc){ b->posted[1], 0 };
	weir_engine_completed(&b->engine, &wc, 350);
	assert_int_equal(wild.heard.posted_ns, 200);
	assert_int_equal(wild.heard.now_ns, 350);
	assert_int_equal(wild.heard.bytes, 9);
	assert_int_equal(wild.heard.in_flight, 17);
	assert_int_equal(wild.heard.wrs_in_flight, 2);
	assert_int_equal(b->window.bytes_max, 64 * KIB);
	assert_int_equal(b->window.wrs_max, 7);
	wc = (struct weir_wc){ b->posted[0], -EIO };
	weir_engine_completed(&b->engine, &wc, 400);
	assert_int_equal(wild.heard.bytes, 9);
	bench_pull(b);
	bench_free(b);
}

/* A limit below the bytes in flight lets nothing through until enough complete. */
static void a_lower_limit_waits(void **state)
{
	struct wild wild = { .learner.completed = wild_completed };
	struct weir_window_waiter waiter;
	struct weir_window w;

	(void)state;
	weir_window_waiter_init(&waiter);
	weir_window_init(&w, 100, 9);
	set_least(&w, &wild, 10, 1);
	wild.says = (struct weir_window_bounds){ 100, 9 };
	weir_window_completed(&w, 0, 0);
	assert_int_equal(weir_window_take(&w, &waiter, 10), 0);
	assert_int_equal(weir_window_take(&w, &waiter, 10), 0);
	wild.says = (struct weir_window_bounds){ 15, 9 };
	weir_window_completed(&w, 10, 0);
	assert_int_equal(weir_window_take(&w, &waiter, 1), -EAGAIN);
	weir_window_give(&w, 10);
	assert_ptr_equal(weir_window_next_waiter(&w), &waiter);
	assert_int_equal(weir_window_take(&w, &waiter, 1), 0);
	weir_window_leave(&waiter);
}

/* A lower limit of work requests does the same. */
static void a_lower_limit_of_wrs_waits(void **state)
{
	struct wild wild = { .learner.completed = wild_completed };
	struct weir_window_waiter waiter;
	struct weir_window w;

	(void)state;
	weir_window_waiter_init(&waiter);
	weir_window_init(&w, 100, 3);
	set_least(&w, &wild, 100, 1);
	wild.says = (struct weir_window_bounds){ 100, 3 };
	weir_window_completed(&w, 0, 0);
	assert_int_equal(weir_window_take(&w, &waiter, 1), 0);
	assert_int_equal(weir_window_take(&w, &waiter, 1), 0);
	wild.says.wrs = 1;
	weir_window_completed(&w, 1, 0);
	weir_window_give(&w, 1);
	assert_int_equal(weir_window_take(&w, &waiter, 1), -EAGAIN);
	assert_null(weir_window_next_waiter(&w));
	weir_window_give(&w, 1);
	assert_ptr_equal(weir_window_next_waiter(&w), &waiter);
	assert_int_equal(weir_window_take(&w, &waiter, 1), 0);
	weir_window_leave(&waiter);
}

#define KIND(name, says, function, kind)                                          \
	{                                                                         \
		name says, (function), NULL, NULL, (void *)&kinds[kind]           \
	}
#define OF_BYTES(name, does, function)                                            \
	KIND(name, " by delay: " does, function, DELAY),                          \
	KIND(name, " by probing: " does, function, KNEE)
/* Windows of a few work requests are too coarse to share evenly. */
#define BOTH(name, does, function)                                                \
	OF_BYTES(name, does, function),                                           \
	KIND(name, " of work requests by delay: " does, function, DELAY_WRS),     \
	KIND(name, " of work requests by probing: " does, function, KNEE_WRS)

int main(void)
{
	static const enum policy_kind kinds[] = { [DELAY] = DELAY,
						  [KNEE] = KNEE,
						  [DELAY_WRS] = DELAY_WRS,
						  [KNEE_WRS] = KNEE_WRS };
	const struct CMUnitTest tests[] = {
		BOTH("a window", "fills the NIC, and not much more", finds_the_knee),
		BOTH("a window", "follows a NIC that gets slower and faster", follows_the_rate),
		BOTH("a window", "follows a path that gets longer and shorter", follows_the_delay),
		BOTH("a window", "does not let the NIC thrash", does_not_thrash),
		OF_BYTES("windows", "share, also with those that come late", shares_fairly),
		BOTH("a window", "does not grow when it is not filled", does_not_grow_unfilled),
		KIND("a window", " by probing: seldom tries others", rests_between_trials, KNEE),
		KIND("a window", " of work requests by probing: seldom tries others",
		     rests_between_trials, KNEE_WRS),
		SAYS("whatever a learner says, the bounds hold", the_bounds_hold),
		SAYS("a learner hears of each success once", successes_are_heard_of),
		SAYS("a lower limit lets nothing through until less is in flight",
		     a_lower_limit_waits),
		SAYS("a lower limit of work requests does so, too", a_lower_limit_of_wrs_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
