/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counts of durations in buckets that are linear within each power of two, as in HdrHistogram:
 * whatever the duration, its bucket is at most 1/64 of it wide.
 */
#ifndef WEIR_APPS_PERF_HISTOGRAM_H
#define WEIR_APPS_PERF_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_LINEAR 64u /* buckets of a power of two */
#define HISTOGRAM_BUCKETS (59u * HISTOGRAM_LINEAR)

/** struct histogram - externally serialised; all zeroes is an empty one */
struct histogram {
	uint64_t count;
	uint64_t max_ns;
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t ns);
void histogram_merge(struct histogram *to, const struct histogram *from);

/**
 * histogram_at() - how long the quickest @share of all took at most
 * @share: of all, 0 to 1
 *
 * Return: ns, at most 1/64 more than it was; 0 if there is none.
 */
uint64_t histogram_at(const struct histogram *h, double share);

/* How many took at least @from_ns and less than @to_ns; exact where both are powers of two or a
 * 64th of one apart. */
uint64_t histogram_between(const struct histogram *h, uint64_t from_ns, uint64_t to_ns);

#endif
