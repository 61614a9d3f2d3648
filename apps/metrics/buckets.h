/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The buckets that Prometheus wants of a histogram of nanoseconds, in seconds. Classic buckets have
 * the same bounds for all histograms. Native ones are exponential and sparse: the bounds are the
 * powers of 2^(2^-schema), which factor is 1.044 here.
 *
 * A bucket of the histogram itself is up to 1/128 of its values wide. Where it lies across a bound
 * of a native bucket, its values are counted above the bound.
 */
#ifndef WEIR_APPS_METRICS_BUCKETS_H
#define WEIR_APPS_METRICS_BUCKETS_H

#include "core/base/histogram.h"

/* Bounds from 2^10 ns (1 us) to 2^34 ns (17 s), by factors of 2. */
#define BUCKETS_CLASSIC 25
/* A bucket of index i holds more than 2^((i-1)/16) s, and at most 2^(i/16) s. */
#define BUCKETS_NATIVE_SCHEMA 4
#define BUCKETS_NATIVE_FIRST (-30 * (1 << BUCKETS_NATIVE_SCHEMA) + 1) /* from 2^-30 s on: 0.93 ns */
#define BUCKETS_NATIVE_LAST (34 * (1 << BUCKETS_NATIVE_SCHEMA)) /* up to 2^34 s: 544 years */
#define BUCKETS_NATIVE (BUCKETS_NATIVE_LAST - BUCKETS_NATIVE_FIRST + 1)
#define BUCKETS_ZERO_MAX_S 0x1p-30

/**
 * struct classic_buckets
 * @bound_s: of values less than it
 * @upto: number of values below the bound
 * @count: of all values
 */
struct classic_buckets {
	double bound_s[BUCKETS_CLASSIC];
	uint64_t upto[BUCKETS_CLASSIC];
	uint64_t count;
};

/**
 * struct native_buckets
 * @zeroes: number of values up to BUCKETS_ZERO_MAX_S
 * @of: number of values in each bucket; of[0] has the index BUCKETS_NATIVE_FIRST
 * @count: of all values
 */
struct native_buckets {
	uint64_t zeroes;
	uint64_t of[BUCKETS_NATIVE];
	uint64_t count;
};

/*
 * Another thread may count values meanwhile. The counts agree with each other nevertheless: they
 * are sums of the histogram's buckets, not its own count.
 */
void buckets_classic(struct classic_buckets *to, const struct weir_histogram *histogram);
void buckets_native(struct native_buckets *to, const struct weir_histogram *histogram);

#endif
