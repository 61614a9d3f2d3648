/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "apps/perf/histogram.h"

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < HISTOGRAM_LINEAR)
		return (unsigned int)ns;
	shift = 63u - (unsigned int)__builtin_clzll(ns / HISTOGRAM_LINEAR);
	return (shift + 1) * HISTOGRAM_LINEAR + (unsigned int)(ns >> shift) - HISTOGRAM_LINEAR;
}

/* The longest duration in a bucket. */
static uint64_t last_of(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < HISTOGRAM_LINEAR)
		return bucket;
	shift = bucket / HISTOGRAM_LINEAR - 1;
	return (((uint64_t)(bucket % HISTOGRAM_LINEAR) + HISTOGRAM_LINEAR + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t ns)
{
	h->count++;
	h->buckets[bucket_of(ns)]++;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	to->count += from->count;
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
}

uint64_t histogram_at(const struct histogram *h, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)h->count + 0.5), seen = 0;

	if (!h->count)
		return 0;
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen && seen >= wanted)
			return last_of(i) < h->max_ns ? last_of(i) : h->max_ns;
	}
	return h->max_ns;
}

uint64_t histogram_between(const struct histogram *h, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t sum = 0;

	for (unsigned int i = bucket_of(from_ns); i < bucket_of(to_ns); i++)
		sum += h->buckets[i];
	return sum;
}
