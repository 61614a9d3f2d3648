/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Histogram: quantiles are within half a bucket, and counts of ranges are exact. */
#include "core/base/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static void a_value_is_found_within_a_256th(void **state)
{
	struct weir_histogram *h;
	uint64_t value;

	(void)state;
	for (value = 1; value < 1ull << 62; value = value * 5 / 3 + 1) {
		h = calloc(1, sizeof(*h));
		weir_histogram_add(h, value);
		assert_int_equal(h->max, value);
		h->max = UINT64_MAX; /* otherwise the maximum limits the result */
		assert_in_range(weir_histogram_at(h, 500000), value - value / 256,
				value + value / 256);
		free(h);
	}
}

static void the_largest_value_has_a_bucket(void **state)
{
	struct weir_histogram *h = calloc(1, sizeof(*h));

	(void)state;
	weir_histogram_add(h, UINT64_MAX);
	weir_histogram_add(h, 0);
	assert_int_equal(h->buckets[WEIR_HISTOGRAM_BUCKETS - 1], 1);
	assert_int_equal(weir_histogram_at(h, 0), 0);
	assert_in_range(weir_histogram_at(h, 1000000), UINT64_MAX - UINT64_MAX / 256, UINT64_MAX);
	free(h);
}

static void quantiles_of_a_thousand_values_are_right(void **state)
{
	struct weir_histogram *h = calloc(1, sizeof(*h));
	uint64_t i;

	(void)state;
	assert_int_equal(weir_histogram_at(h, 500000), 0);
	for (i = 1; i <= 1000; i++)
		weir_histogram_add(h, i * 1000);
	assert_int_equal(h->sum, 500500000);
	assert_in_range(weir_histogram_at(h, 500000), 500000 - 1953, 500000 + 1953);
	assert_in_range(weir_histogram_at(h, 990000), 990000 - 3867, 990000 + 3867);
	assert_int_equal(weir_histogram_at(h, 1000000), 1000000);
	free(h);
}

static void merging_adds_up(void **state)
{
	struct weir_histogram *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));

	(void)state;
	weir_histogram_add(a, 100);
	weir_histogram_add(b, 100);
	weir_histogram_add(b, 5000);
	weir_histogram_merge(a, b);
	assert_int_equal(a->count, 3);
	assert_int_equal(a->sum, 5200);
	assert_int_equal(a->max, 5000);
	assert_int_equal(weir_histogram_between(a, 64, 128), 2);
	assert_int_equal(weir_histogram_between(a, 4096, 8192), 1);
	free(a);
	free(b);
}

static void ranges_between_bucket_bounds_are_exact(void **state)
{
	struct weir_histogram *h = calloc(1, sizeof(*h));
	uint64_t from, step = 1024 / 128, value;

	(void)state;
	for (value = 0; value < 4096; value++)
		weir_histogram_add(h, value);
	for (from = 1024; from < 2048; from += step)
		assert_int_equal(weir_histogram_between(h, from, from + step), step);
	assert_int_equal(weir_histogram_between(h, 0, 4096), 4096);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_is_found_within_a_256th),
		cmocka_unit_test(the_largest_value_has_a_bucket),
		cmocka_unit_test(quantiles_of_a_thousand_values_are_right),
		cmocka_unit_test(merging_adds_up),
		cmocka_unit_test(ranges_between_bucket_bounds_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
