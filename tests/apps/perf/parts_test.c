/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Test: apps perf parts */
/* The parts of weir perf that need no donor: patterns, contents, the plot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/perf/pattern.h"
#include "apps/perf/report.h"
#include "apps/perf/verify.h"
#include "tests/support/cmocka_all.h"

#define BLOCKS 1000
#define CHARACTER 7.0 /* pixels: the widest digit of a font of 12 */

/* Counts visits of each block when @workers take @steps each, in turns. */
static void walk_all(enum pattern pattern, unsigned int workers, unsigned int steps,
		     unsigned int *met)
{
	struct walk_plan plan;
	struct perf_walk walks[8];

	memset(met, 0, BLOCKS * sizeof(*met));
	walk_plan_init(&plan, pattern, BLOCKS, 4, workers, 7);
	for (unsigned int i = 0; i < workers; i++)
		walk_init(&walks[i], &plan, i);
	for (unsigned int k = 0; k < steps; k++) {
		for (unsigned int i = 0; i < workers; i++) {
			uint64_t block = walk_next(&walks[i]);

			assert_true(block < BLOCKS);
			met[block]++;
		}
	}
}

static void walks_visit_each_block_equally_often(void **in)
{
	static const enum pattern patterns[] = { PATTERN_SEQUENTIAL, PATTERN_STRIDED,
						 PATTERN_CLUSTERS };
	unsigned int met[BLOCKS];

	(void)in;
	for (unsigned int i = 0; i < 3; i++) {
		walk_all(patterns[i], 5, 3 * BLOCKS / 5, met);
		for (unsigned int k = 0; k < BLOCKS; k++)
			assert_int_equal(met[k], 3);
	}
}

static void sequential_gives_neighbours_to_neighbours(void **in)
{
	struct walk_plan plan;
	struct perf_walk walks[2];

	(void)in;
	walk_plan_init(&plan, PATTERN_SEQUENTIAL, BLOCKS, 1, 2, 1);
	walk_init(&walks[0], &plan, 0);
	walk_init(&walks[1], &plan, 1);
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(walk_next(&walks[i % 2]), i);
}

static void strided_has_no_neighbours_in_a_round(void **in)
{
	struct walk_plan plan;
	struct perf_walk walk;

	(void)in;
	walk_plan_init(&plan, PATTERN_STRIDED, BLOCKS, 4, 1, 1);
	walk_init(&walk, &plan, 0);
	for (uint64_t i = 0; i < BLOCKS / 4; i++)
		assert_int_equal(walk_next(&walk), 4 * i);
	assert_int_equal(walk_next(&walk), 1);
}

/* Of 100,000 draws by Zipf's law with 0.99 over 1000 blocks, the most frequent has 1 in 7.7. */
static void zipf_has_the_expected_skew(void **in)
{
	unsigned int met[BLOCKS], most = 0;

	(void)in;
	walk_all(PATTERN_ZIPF, 1, 100000, met);
	for (unsigned int i = 0; i < BLOCKS; i++)
		most = met[i] > most ? met[i] : most;
	assert_in_range(most, 11000, 16000);
}

static void random_is_flat_and_the_seed_decides(void **in)
{
	unsigned int met[BLOCKS], again[BLOCKS], most = 0;

	(void)in;
	walk_all(PATTERN_RANDOM, 4, 25000, met);
	walk_all(PATTERN_RANDOM, 4, 25000, again);
	assert_memory_equal(met, again, sizeof(met));
	for (unsigned int i = 0; i < BLOCKS; i++)
		most = met[i] > most ? met[i] : most;
	assert_in_range(most, 100, 200);
}

static void contents_that_moved_or_changed_are_noticed(void **in)
{
	struct verify v;
	uint8_t data[100];

	(void)in;
	assert_int_equal(verify_init(&v, 3, 4096, 64), 0);
	for (uint64_t offset = 0; offset < 16; offset++) {
		verify_fill(&v, data, offset, sizeof(data));
		assert_true(verify_matches(&v, data, offset, sizeof(data)));
		assert_false(verify_matches(&v, data, offset + 64, sizeof(data)));
		data[99] ^= 1;
		assert_false(verify_matches(&v, data, offset, sizeof(data)));
	}
	memset(data, 0, sizeof(data));
	assert_false(verify_matches(&v, data, 0, sizeof(data)));
	verify_fini(&v);
}

/* Draws latencies of 1 us to 2^@powers us, and returns the numbers on the time axis. */
static unsigned int check_labels(unsigned int powers)
{
	char path[] = "/tmp/weir-plot-XXXXXX", line[512];
	struct perf_options options = { .cmd = "test", .plot_path = path };
	struct perf_result result = { .seconds = 1, .ops = 2 };
	double end = -1, x;
	unsigned int count = 0;
	FILE *svg;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	weir_histogram_add(&result.latency, 1000);
	weir_histogram_add(&result.latency, 1000ull << powers);
	assert_int_equal(plot_write(&options, &result), 0);
	svg = fdopen(fd, "r");
	while (fgets(line, sizeof(line), svg)) {
		const char *text = strstr(line, "/><text ");
		int from = 0;

		if (text)
			sscanf(text, "/><text x=\"%lf\" y=\"%*d\" text-anchor=\"middle\">%n", &x,
			       &from);
		if (!from)
			continue;
		assert_true(x - CHARACTER * strcspn(text + from, "<") / 2 > end);
		end = x + CHARACTER * strcspn(text + from, "<") / 2;
		count++;
	}
	fclose(svg);
	remove(path);
	return count;
}

static void numbers_on_the_time_axis_do_not_touch(void **in)
{
	(void)in;
	for (unsigned int powers = 1; powers < 28; powers++)
		assert_in_range(check_labels(powers), 2, powers + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_visit_each_block_equally_often),
		cmocka_unit_test(sequential_gives_neighbours_to_neighbours),
		cmocka_unit_test(strided_has_no_neighbours_in_a_round),
		cmocka_unit_test(zipf_has_the_expected_skew),
		cmocka_unit_test(random_is_flat_and_the_seed_decides),
		cmocka_unit_test(contents_that_moved_or_changed_are_noticed),
		cmocka_unit_test(numbers_on_the_time_axis_do_not_touch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
