/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which small writes each policy unloads. */
#include <stdlib.h>

#include "core/base/rng.h"
#include "tests/support/engine_bench.h"

#define COUNTERS 4096u
#define HOT 64u
#define FAST_NS 2000
#define SLOW_NS 5000

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
	return weir_rng_scale(weir_rng_next(&random_state), bound);
}

struct path_table {
	struct weir_path_selector route;
	uint8_t counters[WEIR_PATH_BYTES(COUNTERS)] __attribute__((aligned(8)));
};

static struct path_table *table_new(enum weir_path_policy policy)
{
	struct weir_path_config config = {
		.policy = policy, .bytes_max = 256, .hot_pages = HOT, .nr_counters = COUNTERS
	};
	struct path_table *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	random_state = 1;
	assert_int_equal(weir_path_init(&t->route, &config, t->counters), 0);
	return t;
}

static bool unloads(struct path_table *t, uint64_t page, enum weir_path_hint hint)
{
	return weir_path_decide(&t->route, page << WEIR_PATH_PAGE_SHIFT, hint, true, 0) &
	       WEIR_PATH_UNLOAD;
}

static void invalid_settings_are_refused(void **state)
{
	static const struct weir_path_config bad[] = {
		{ WEIR_PATH_POLICY_MEASURED + 1, 1, 1, COUNTERS },
		{ WEIR_PATH_POLICY_HINTS, 0, 1, 0 },
		{ WEIR_PATH_POLICY_HINTS, 1, 0, 0 },
		{ WEIR_PATH_POLICY_FREQUENCY, 1, 1, 0 },
		{ WEIR_PATH_POLICY_FREQUENCY, 1, 1, 100 },
		{ WEIR_PATH_POLICY_MEASURED, 1, 1, 32 },
		{ WEIR_PATH_POLICY_FREQUENCY, 1, 1, 2 * WEIR_PATH_COUNTERS_MAX },
	};
	struct weir_path_config good = { WEIR_PATH_POLICY_FREQUENCY, 1, 1, COUNTERS };
	static uint8_t counters[WEIR_PATH_BYTES(COUNTERS)] __attribute__((aligned(8)));
	struct weir_path_selector route;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(weir_path_init(&route, &bad[i], counters), -EINVAL);
	assert_int_equal(weir_path_init(&route, &good, NULL), -EINVAL);
	assert_int_equal(weir_path_init(&route, &good, counters), 0);
}

static void each_policy_takes_hints_its_way(void **state)
{
	static const struct {
		enum weir_path_policy policy;
		bool none, hot, cold; /* whether a write with such a hint is unloaded */
	} cases[] = {
		{ WEIR_PATH_POLICY_OFFLOAD, false, false, false },
		{ WEIR_PATH_POLICY_UNLOAD, true, false, true },
		{ WEIR_PATH_POLICY_HINTS, false, false, true },
		{ WEIR_PATH_POLICY_FREQUENCY, false, false, true },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct path_table *t = table_new(cases[i].policy);

		assert_int_equal(unloads(t, 7, WEIR_PATH_HINT_NONE), cases[i].none);
		assert_int_equal(unloads(t, 7, WEIR_PATH_HINT_HOT), cases[i].hot);
		assert_int_equal(unloads(t, 7, WEIR_PATH_HINT_COLD), cases[i].cold);
		free(t);
	}
}

static void pages_that_fit_the_nics_cache_are_offloaded(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_FREQUENCY);
	int i;

	(void)state;
	for (i = 0; i < 100000; i++)
		assert_false(unloads(t, 1000 + random_below(HOT), WEIR_PATH_HINT_NONE));
	assert_int_equal(t->route.hot, t->route.decided);
	assert_int_equal(t->route.pages.count, HOT);
	free(t);
}

/* Every other write goes to one of HOT pages from @base on, the rest to any of @pages. */
static void shares(struct path_table *t, uint64_t base, uint64_t pages, int writes, double *hot,
		   double *cold)
{
	int i, seen[2] = { 0, 0 }, unloaded[2] = { 0, 0 };

	for (i = 0; i < writes; i++) {
		bool is_cold = random_below(2);
		uint64_t page = is_cold ? random_below(pages) : base + random_below(HOT);

		seen[is_cold]++;
		unloaded[is_cold] += unloads(t, page, WEIR_PATH_HINT_NONE);
	}
	*hot = (double)unloaded[0] / seen[0];
	*cold = (double)unloaded[1] / seen[1];
}

static void finds_hot_pages(struct path_table *t, uint64_t pages)
{
	double hot, cold;

	shares(t, 100, pages, 200000, &hot, &cold);
	shares(t, 100, pages, 100000, &hot, &cold);
	assert_true(hot < 0.05);
	assert_true(cold > 0.9);
	shares(t, 2000, pages, 400000, &hot, &cold); /* other pages have become hot */
	shares(t, 2000, pages, 100000, &hot, &cold);
	assert_true(hot < 0.05);
	assert_true(cold > 0.9);
}

static void pages_written_often_are_hot(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_FREQUENCY);

	(void)state;
	finds_hot_pages(t, COUNTERS);
	assert_false(t->route.pages.is_sketch);
	free(t);
}

static void they_are_found_among_more_pages_than_counters(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_FREQUENCY);

	(void)state;
	finds_hot_pages(t, 16 * COUNTERS);
	assert_true(t->route.pages.is_sketch);
	free(t);
}

/*
 * One write in eight is counted, whatever the pattern; a quarter of the counters decays each
 * round.
 */
static void huge_pages_are_counted_beside(void **state)
{
	const uint64_t pages_of_one = 1u << (WEIR_PATH_HUGE_SHIFT - WEIR_PATH_PAGE_SHIFT);
	struct path_table *t = table_new(WEIR_PATH_POLICY_FREQUENCY);
	uint64_t i;

	(void)state;
	for (i = 0; i < 8000; i++)
		unloads(t, i % 8 * pages_of_one + i / 8 % pages_of_one, WEIR_PATH_HINT_NONE);
	assert_int_equal(t->route.huge.count, 8);
	assert_true(t->route.pages.count > HOT);
	assert_int_equal(t->route.huge.hot, 8);
	free(t);
}

static bool is_in_a_line(const struct weir_page_heat *p, uint32_t counter)
{
	uint32_t line = counter / WEIR_PAGE_HEAT_LINE;

	return p->lines[line / WEIR_PAGE_HEAT_LINES] >> line % WEIR_PAGE_HEAT_LINES & 1;
}

static void assert_histogram_is_right(const struct path_table *t)
{
	uint32_t i, nr = t->route.pages.is_sketch ? COUNTERS / 2 : COUNTERS, hot = 0;
	uint32_t histogram[256] = { 0 };

	for (i = 0; i < nr; i++) {
		histogram[t->counters[i]]++;
		hot += t->counters[i] >= t->route.pages.threshold;
		assert_true(!t->counters[i] || is_in_a_line(&t->route.pages, i));
	}
	assert_int_equal(t->route.pages.count, nr - histogram[0]);
	histogram[0] = 0;
	assert_memory_equal(histogram, t->route.pages.histogram, sizeof(histogram));
	assert_int_equal(hot, t->route.pages.hot);
	assert_true(hot <= HOT);
	assert_true(t->route.pages.threshold == 1 ||
		    hot + histogram[t->route.pages.threshold - 1] > HOT);
}

static void the_threshold_is_the_lowest_that_fits(void **state)
{
	static const uint64_t pages[] = { 1, 32, 65, 300, COUNTERS, COUNTERS + 1, 1 << 20 };
	size_t i;
	int j;

	(void)state;
	for (i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
		struct path_table *t = table_new(WEIR_PATH_POLICY_FREQUENCY);

		for (j = 0; j < 50000; j++) {
			uint64_t page = random_below(pages[i]);

			unloads(t, random_below(3) ? page * page / pages[i] : page,
				WEIR_PATH_HINT_NONE);
			if (j % 500 == 0)
				assert_histogram_is_right(t);
		}
		free(t);
	}
}

/*
 * The share of hot pages in one million writes, after two million for warm-up. All pages,
 * @stride apart, are written equally often. If @is_skewed, the first nth of the pages takes the
 * cube root of 1/n.
 */
static double hot_share(uint64_t pages, uint64_t stride, bool is_skewed)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_FREQUENCY);
	uint64_t before = 0;
	double share;
	int i;

	for (i = 0; i < 3000000; i++) {
		uint64_t page = random_below(pages);

		if (i == 2000000)
			before = t->route.hot;
		if (is_skewed)
			page = page * page / pages * page / pages;
		unloads(t, page * stride, WEIR_PATH_HINT_NONE);
	}
	share = (double)(t->route.hot - before) / 1000000;
	assert_histogram_is_right(t);
	free(t);
	return share;
}

static void counters_never_run_up_to_their_end(void **state)
{
	const struct {
		uint64_t pages, stride;
		bool is_skewed;
		double ideal; /* share of the best HOT pages */
	} cases[] = {
		{ 4 * HOT, 1, false, 0.25 },
		{ 2 * HOT, COUNTERS / (2 * HOT), false, 0.5 }, /* far apart */
		{ 4 * HOT, 5 * COUNTERS, false, 0.25 }, /* in a sketch */
		{ COUNTERS, 1, true, 0.25 },
		{ 16 * COUNTERS, 1, true, 0.099 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double share = hot_share(cases[i].pages, cases[i].stride, cases[i].is_skewed);

		print_message("# hot %.3f, at best %.3f\n", share, cases[i].ideal);
		/* in a sketch, where some pages share a counter */
		assert_true(share > cases[i].ideal * 0.8);
		assert_true(share < cases[i].ideal * 1.3);
	}
}

/*
 * All writes go to @pages distant pages, over a million counters. Return: the number of hurried
 * rounds.
 */
static uint32_t hurries(uint32_t pages, uint32_t room, double *hot)
{
	const uint32_t nr = 1u << 20, writes = 1u << 20;
	uint8_t *counters = calloc(WEIR_PAGE_HEAT_BYTES(nr), 1);
	uint32_t i, hurried = 0, nr_hot = 0;
	struct weir_page_heat p;

	assert_non_null(counters);
	random_state = 1;
	assert_int_equal(weir_page_heat_init(&p, counters, nr, room), 0);
	for (i = 0; i < 2 * writes; i++) {
		bool is_hot =
			weir_page_heat_record_write(&p, random_below(pages) * (nr / pages - 1));

		hurried += i >= writes && p.threshold > 192;
		nr_hot += i >= writes && is_hot;
	}
	free(counters);
	*hot = (double)nr_hot / writes;
	return hurried;
}

static void few_pages_that_are_far_apart_do_not_keep_it_hurrying(void **state)
{
	static const struct {
		uint32_t pages, room;
	} cases[] = { { 2, 1 }, { 3, 2 }, { 65, 64 }, { 100, 64 }, { 4097, 4096 } };
	size_t i;
	double hot;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_true(hurries(cases[i].pages, cases[i].room, &hot) < (1u << 20) / 20);
		assert_true(hot > 0.8 * cases[i].room / cases[i].pages);
	}
}

static void the_ends_of_the_address_space_are_pages_as_well(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_FREQUENCY);
	int i;

	(void)state;
	for (i = 0; i < 10000; i++)
		unloads(t, i & 1 ? 0 : UINT64_MAX >> WEIR_PATH_PAGE_SHIFT, WEIR_PATH_HINT_NONE);
	assert_true(t->route.pages.is_sketch);
	assert_histogram_is_right(t);
	free(t);
}

static void nothing_is_unloaded_while_the_target_has_no_time(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_UNLOAD);

	(void)state;
	weir_path_pause(&t->route, 1000);
	weir_path_pause(&t->route, 500); /* an earlier time does not shorten the pause */
	assert_int_equal(weir_path_decide(&t->route, 0, WEIR_PATH_HINT_COLD, true, 999),
			 WEIR_PATH_OFFLOAD);
	assert_int_equal(weir_path_decide(&t->route, 0, WEIR_PATH_HINT_COLD, true, 1000),
			 WEIR_PATH_UNLOAD);
	free(t);
}

/* A cold write with the duration of its path. Return: the path. */
static unsigned int write_cold(struct path_table *t, uint64_t offload_ns, uint64_t unload_ns)
{
	unsigned int path = weir_path_decide(&t->route, 0, WEIR_PATH_HINT_COLD, true, 0);

	if (path & WEIR_PATH_PROBE)
		weir_path_completed(&t->route, path,
				    path & WEIR_PATH_UNLOAD ? unload_ns : offload_ns);
	return path;
}

static void where_unloading_is_slower_it_settles_on_offload(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_MEASURED);
	int i, unloaded = 0;

	(void)state;
	for (i = 0; i < WEIR_PATH_PROBES; i++)
		unloaded += (write_cold(t, FAST_NS, SLOW_NS) & WEIR_PATH_UNLOAD) != 0;
	assert_int_equal(unloaded, WEIR_PATH_PROBES / 2);
	for (i = 1; i < WEIR_PATH_REST_MIN; i++)
		assert_int_equal(write_cold(t, FAST_NS, SLOW_NS), WEIR_PATH_OFFLOAD);
	for (i = 0, unloaded = 0; i < 1000000; i++)
		unloaded += (write_cold(t, FAST_NS, SLOW_NS) & WEIR_PATH_UNLOAD) != 0;
	assert_true(unloaded <= 10 * WEIR_PATH_PROBES / 2); /* probes become ever rarer */
	assert_false(t->route.trial.pays);
	free(t);
}

static void where_unloading_is_faster_it_unloads(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_MEASURED);
	int i, unloaded = 0;

	(void)state;
	for (i = 0; i < WEIR_PATH_PROBES; i++)
		write_cold(t, SLOW_NS, FAST_NS);
	for (i = 0; i < 100000; i++)
		unloaded += (write_cold(t, SLOW_NS, FAST_NS) & WEIR_PATH_UNLOAD) != 0;
	assert_true(unloaded > 96000);
	for (i = 0; t->route.trial.pays; i++) /* now the other device is faster */
		write_cold(t, FAST_NS, SLOW_NS);
	assert_true(i <= WEIR_PATH_REST_MIN + 2 * WEIR_PATH_PROBES);
	assert_int_equal(write_cold(t, FAST_NS, SLOW_NS), WEIR_PATH_OFFLOAD);
	free(t);
}

static void where_both_take_as_long_it_settles_on_offload(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_MEASURED);
	int i;

	(void)state;
	for (i = 0; i < WEIR_PATH_PROBES; i++)
		write_cold(t, FAST_NS, FAST_NS);
	assert_int_equal(t->route.trial.trials, 1);
	assert_false(t->route.trial.pays);
	free(t);
}

static void a_trial_of_writes_that_failed_says_nothing(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_MEASURED);
	unsigned int path;
	int i;

	(void)state;
	for (i = 0; i < WEIR_PATH_PROBES; i++)
		write_cold(t, SLOW_NS, FAST_NS);
	assert_true(t->route.trial.pays);
	for (i = 1; i < WEIR_PATH_REST_MIN; i++)
		assert_int_equal(write_cold(t, 0, 0), WEIR_PATH_UNLOAD);
	for (i = 0; i < WEIR_PATH_PROBES; i++) {
		path = weir_path_decide(&t->route, 0, WEIR_PATH_HINT_COLD, true, 0);
		assert_true(path & WEIR_PATH_PROBE);
		weir_path_abandon_probe(&t->route);
	}
	assert_int_equal(t->route.trial.trials, 2);
	assert_true(t->route.trial.pays);
	free(t);
}

static void a_write_that_will_not_be_told_of_is_no_probe(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_MEASURED);
	int i;

	(void)state;
	for (i = 0; i < 10 * WEIR_PATH_PROBES; i++)
		assert_int_equal(weir_path_decide(&t->route, 0, WEIR_PATH_HINT_COLD, false, 0),
				 WEIR_PATH_OFFLOAD);
	for (i = 0; i < WEIR_PATH_PROBES; i++) { /* among other writes */
		if (i % 10)
			weir_path_decide(&t->route, 0, WEIR_PATH_HINT_COLD, false, 0);
		write_cold(t, SLOW_NS, FAST_NS);
	}
	assert_int_equal(t->route.trial.trials, 1);
	assert_int_equal(weir_path_decide(&t->route, 0, WEIR_PATH_HINT_COLD, false, 0),
			 WEIR_PATH_UNLOAD);
	free(t);
}

static void no_verdict_falls_while_a_trial_is_under_way(void **state)
{
	struct path_table *t = table_new(WEIR_PATH_POLICY_MEASURED);
	unsigned int paths[WEIR_PATH_PROBES];
	int i;

	(void)state;
	for (i = 0; i < WEIR_PATH_PROBES; i++)
		paths[i] = weir_path_decide(&t->route, 0, WEIR_PATH_HINT_COLD, true, 0);
	for (i = 0; i < 10; i++) /* more writes come before the first one completes */
		assert_int_equal(write_cold(t, 0, 0), WEIR_PATH_OFFLOAD);
	for (i = WEIR_PATH_PROBES; i-- > 0;) {
		assert_int_equal(t->route.trial.trials, 0);
		weir_path_completed(&t->route, paths[i],
				    paths[i] & WEIR_PATH_UNLOAD ? FAST_NS : UINT64_MAX);
	}
	assert_int_equal(t->route.trial.trials, 1);
	assert_true(t->route.trial.pays);
	free(t);
}

static void a_cache_keeps_the_most_written_pages(void **state)
{
	struct weir_page_heat_reach reach = { .entries = 3 };

	(void)state;
	weir_page_heat_reach_add(&reach, 9, 2);
	weir_page_heat_reach_add(&reach, 5, 4);
	weir_page_heat_reach_add(&reach, 1, 7);
	assert_int_equal(reach.pages, 13);
	assert_int_equal(reach.writes, 45);
	assert_int_equal(reach.hits, 23);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAYS("invalid settings are refused", invalid_settings_are_refused),
		SAYS("each policy takes hints its way", each_policy_takes_hints_its_way),
		SAYS("pages that fit the NIC's cache are offloaded",
		     pages_that_fit_the_nics_cache_are_offloaded),
		SAYS("pages written often are hot", pages_written_often_are_hot),
		SAYS("they are found among more pages than counters",
		     they_are_found_among_more_pages_than_counters),
		SAYS("huge pages are counted beside", huge_pages_are_counted_beside),
		SAYS("the threshold is the lowest that fits",
		     the_threshold_is_the_lowest_that_fits),
		SAYS("counters never run up to their end", counters_never_run_up_to_their_end),
		SAYS("few pages that are far apart do not keep it hurrying",
		     few_pages_that_are_far_apart_do_not_keep_it_hurrying),
		SAYS("the ends of the address space are pages as well",
		     the_ends_of_the_address_space_are_pages_as_well),
		SAYS("nothing is unloaded while the target has no time",
		     nothing_is_unloaded_while_the_target_has_no_time),
		SAYS("where unloading is slower it settles on offload",
		     where_unloading_is_slower_it_settles_on_offload),
		SAYS("where unloading is faster it unloads", where_unloading_is_faster_it_unloads),
		SAYS("where both take as long it settles on offload",
		     where_both_take_as_long_it_settles_on_offload),
		SAYS("a trial of writes that failed says nothing",
		     a_trial_of_writes_that_failed_says_nothing),
		SAYS("a write that will not be told of is no probe",
		     a_write_that_will_not_be_told_of_is_no_probe),
		SAYS("no verdict falls while a trial is under way",
		     no_verdict_falls_while_a_trial_is_under_way),
		SAYS("a cache keeps the most written pages", a_cache_keeps_the_most_written_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
