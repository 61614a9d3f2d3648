/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Log-linear histogram, as HdrHistogram: the buckets are linear within each power of two. All
 * values are counted within 1 % in bounded memory.
 */
#ifndef WEIR_CORE_BASE_HISTOGRAM_H
#define WEIR_CORE_BASE_HISTOGRAM_H

#include "core/base/platform.h"

#define WEIR_HISTOGRAM_LINEAR_BITS 7
#define WEIR_HISTOGRAM_BUCKETS ((64 - WEIR_HISTOGRAM_LINEAR_BITS + 1) << WEIR_HISTOGRAM_LINEAR_BITS)

/**
 * struct weir_histogram - starts as zeroes; externally serialised
 * @buckets: count of each bucket
 * @count, @sum, @max: of all values; @sum wraps
 */
struct weir_histogram {
	uint64_t buckets[WEIR_HISTOGRAM_BUCKETS];
	uint64_t count;
	uint64_t sum;
	uint64_t max;
};

void weir_histogram_add(struct weir_histogram *h, uint64_t value);
void weir_histogram_merge(struct weir_histogram *to, const struct weir_histogram *from);

/**
 * weir_histogram_at() - get a quantile
 * @per_million: fraction of all values, 0 to 1000000
 *
 * Return: the middle of the bucket that holds the value, at most 1/256 off, or @max if that is
 * less; 0 if the histogram is empty.
 */
uint64_t weir_histogram_at(const struct weir_histogram *h, uint32_t per_million);

/*
 * Number of values of at least @from and less than @to. Exact if both are powers of two, or differ
 * from one by a multiple of its 1/128.
 */
uint64_t weir_histogram_between(const struct weir_histogram *h, uint64_t from, uint64_t to);

#endif
