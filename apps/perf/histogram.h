/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A histogram of durations with buckets that are linear within each power of two, as in
 * HdrHistogram: a bucket's width is at most 1/64 of the duration.
 */
#ifndef WEIR_APPS_PERF_HISTOGRAM_H
#define WEIR_APPS_PERF_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_LINEAR 64u /* buckets per power of two */
#define HISTOGRAM_BUCKETS (59u * HISTOGRAM_LINEAR)

/**
 * struct histogram - externally serialised; all zero: empty
 */
struct histogram {
	uint64_t count;
	uint64_t max_ns;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t ns);
void histogram_merge(struct histogram *to, const struct histogram *from);

/**
 * histogram_at() - get a percentile
 * @share: fraction of all durations, 0 to 1
 *
 * Return: ns, at most 1/64 too long; 0 if the histogram is empty.
 */
uint64_t histogram_at(const struct histogram *h, double share);

/*
 * Number of durations of at least @from_ns and less than @to_ns. Exact if both are powers of two,
 * or 1/64 of one apart.
 */
uint64_t histogram_between(const struct histogram *h, uint64_t from_ns, uint64_t to_ns);

#endif
