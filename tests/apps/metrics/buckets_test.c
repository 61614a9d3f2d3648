/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/buckets.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static struct weir_histogram histogram;
static struct native_buckets native;
static struct classic_buckets classic;

static double bound_ns(int index)
{
	return pow(2, index / 16.0) * 1e9;
}

/* The only bucket that holds something: its index. */
static int index_of_only(void)
{
	int found = -1;

	for (int i = 0; i < BUCKETS_NATIVE; i++) {
		if (!native.of[i])
			continue;
		assert_int_equal(found, -1);
		assert_int_equal(native.of[i], 1);
		found = i;
	}
	assert_int_not_equal(found, -1);
	return found + BUCKETS_NATIVE_FIRST;
}

static void a_value_lies_in_its_native_bucket(void **state)
{
	(void)state;
	for (double at = 1; at < 0x1p60; at = at < 600 ? at + 1 : at * 1.0007) {
		uint64_t value = (uint64_t)at;
		int index;

		histogram = (struct weir_histogram){ 0 };
		weir_histogram_add(&histogram, value);
		buckets_native(&native, &histogram);
		assert_int_equal(native.count, 1);
		assert_int_equal(native.zeroes, 0);
		index = index_of_only();
		assert_true((double)value <= bound_ns(index));
		assert_true((double)value * (1 + 1 / 128.0) > bound_ns(index - 1));
		if (value < 256)
			assert_true((double)value > bound_ns(index - 1));
	}
}

static void the_smallest_and_largest_values_are_counted(void **state)
{
	(void)state;
	histogram = (struct weir_histogram){ 0 };
	weir_histogram_add(&histogram, 0);
	weir_histogram_add(&histogram, 1);
	weir_histogram_add(&histogram, (uint64_t)0x1p63);
	buckets_native(&native, &histogram);
	buckets_classic(&classic, &histogram);
	assert_int_equal(native.zeroes, 1);
	assert_int_equal(native.of[1], 1); /* up to 2^(-478/16) s: 1.01 ns */
	assert_int_equal(native.count, 3);
	assert_int_equal(classic.count, 3);
	assert_int_equal(classic.upto[0], 2);
	assert_int_equal(classic.upto[BUCKETS_CLASSIC - 1], 2);
}

static void a_classic_bound_is_exact(void **state)
{
	(void)state;
	histogram = (struct weir_histogram){ 0 };
	weir_histogram_add(&histogram, 1023);
	weir_histogram_add(&histogram, 1024);
	weir_histogram_add(&histogram, 2047);
	buckets_classic(&classic, &histogram);
	assert_true(classic.bound_s[0] == 1.024e-6);
	assert_int_equal(classic.upto[0], 1);
	assert_int_equal(classic.upto[1], 3);
}

/* The histogram's own count is copied later than the buckets, while values arrive. */
static void counts_agree_in_a_torn_copy(void **state)
{
	uint64_t sum = 0;

	(void)state;
	histogram = (struct weir_histogram){ 0 };
	weir_histogram_add(&histogram, 5000);
	histogram.count = 3;
	buckets_native(&native, &histogram);
	buckets_classic(&classic, &histogram);
	for (int i = 0; i < BUCKETS_NATIVE; i++)
		sum += native.of[i];
	assert_int_equal(native.count, sum);
	assert_int_equal(classic.count, sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_lies_in_its_native_bucket),
		cmocka_unit_test(the_smallest_and_largest_values_are_counted),
		cmocka_unit_test(a_classic_bound_is_exact),
		cmocka_unit_test(counts_agree_in_a_torn_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
