/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/metrics/buckets.h"

#include <math.h>

#include "lib/base/clock.h"

#define CLASSIC_FIRST 10 /* power of 2 */

void buckets_classic(struct classic_buckets *to, const struct weir_histogram *histogram)
{
	uint64_t from_ns = 0;

	to->count = 0;
	for (int i = 0; i < BUCKETS_CLASSIC; i++) {
		uint64_t bound_ns = 1ull << (CLASSIC_FIRST + i);

		to->count += weir_histogram_between(histogram, from_ns, bound_ns);
		to->upto[i] = to->count;
		to->bound_s[i] = (double)bound_ns / WEIR_NS_PER_S;
		from_ns = bound_ns;
	}
	to->count += weir_histogram_between(histogram, from_ns, UINT64_MAX);
}

/* The first nanosecond past the bucket. */
static uint64_t native_end_ns(int index)
{
	return (uint64_t)(exp2((double)index / (1 << BUCKETS_NATIVE_SCHEMA)) * WEIR_NS_PER_S) + 1;
}

void buckets_native(struct native_buckets *to, const struct weir_histogram *histogram)
{
	uint64_t from_ns = native_end_ns(BUCKETS_NATIVE_FIRST - 1);

	to->zeroes = to->count = weir_histogram_between(histogram, 0, from_ns);
	for (int i = 0; i < BUCKETS_NATIVE; i++) {
		uint64_t end_ns = native_end_ns(BUCKETS_NATIVE_FIRST + i);

		to->of[i] = weir_histogram_between(histogram, from_ns, end_ns);
		to->count += to->of[i];
		from_ns = end_ns;
	}
}
